package decode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Scalar returns the text of a value of kind k, which a variable may give too.
func (v Value) Scalar(k tree.Kind) (string, bool) {
	if v.Kind == tree.Text && strings.Contains(v.Text, "${") {
		s, ok := v.Expanded()
		return s, ok && !v.Unchecked()
	}
	return v.Text, v.Is(k)
}

// Flag reads true or false.
func Flag(to *bool) Reader {
	return func(v Value) {
		s, ok := v.Scalar(tree.Boolean)
		switch {
		case !ok:
		case s == "true" || s == "false":
			*to = s == "true"
		default:
			v.Fail("%q is neither true nor false", v.Text)
		}
	}
}

// Count reads a whole number.
func Count(to *int, low, high int) Reader {
	return func(v Value) {
		s, ok := v.Scalar(tree.Number)
		if !ok {
			return
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			v.Fail("%q is not a whole number from %d to %d", v.Text, low, high)
			return
		}
		*to = n
	}
}

// Measure reads a number with a unit; parse makes it a value.
func Measure[T int64 | time.Duration](to *T, unit string, parse func(string) (T, error)) Reader {
	return func(v Value) {
		if !v.HasUnit(unit) {
			return
		}
		s, ok := v.Expanded()
		if !ok || v.Unchecked() {
			return
		}
		n, err := parse(s)
		if err != nil {
			v.Fail("%q %v", v.Text, err)
			return
		}
		*to = n
	}
}

// HasUnit reports whether v is a text, as a number with a unit is, and fails it otherwise.
func (v Value) HasUnit(unit string) bool {
	if v.Kind == tree.Number {
		v.Fail("%s has no unit: write %s%s", v.Text, v.Text, unit)
		return false
	}
	return v.Is(tree.Text)
}

// Duration reads a duration.
func Duration(to *time.Duration, low, high time.Duration) Reader {
	return Measure(to, "s", func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, errors.New("is not a duration: write a number and ms, s, m or h, such as 30s")
		}
		if d < low || d > high {
			return 0, fmt.Errorf("is not from %s to %s", DurationText(low), DurationText(high))
		}
		return d, nil
	})
}

// Size reads a size in bytes.
func Size(to *int64, low, high int64) Reader {
	return Measure(to, "MiB", func(s string) (int64, error) {
		n, err := parseSize(s)
		if err == nil && (n < low || n > high) {
			err = fmt.Errorf("is not from %s to %s", SizeText(low), SizeText(high))
		}
		return n, err
	})
}

// Age reads an age of at least a minute.
func Age(to *time.Duration) Reader {
	return Measure(to, "d", func(s string) (time.Duration, error) {
		d, err := ParseAge(s)
		if err != nil || d < time.Minute {
			return 0, errors.New("is not an age of a minute or more, such as 30d or 12h")
		}
		return d, nil
	})
}
