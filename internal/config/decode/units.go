package decode

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// DurationText returns d without the zeros that String ends in (24h0m0s).
func DurationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}

// ParseAge reads a duration, which may be in days.
func ParseAge(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(days)
	if err == nil && n > 36500 {
		err = strconv.ErrRange
	}
	return time.Duration(n) * 24 * time.Hour, err
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,18}) ?(B|KiB|MiB|GiB)$`)

// parseSize reads a size; one that 64 bits do not hold is as large as they can.
func parseSize(s string) (int64, error) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, errors.New("is not a size: write a whole number and B, KiB, MiB or GiB, such as 64MiB")
	}
	v, _ := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[m[2]]
	return min(v, math.MaxInt64/unit) * unit, nil
}

// SizeText returns n bytes with the largest unit that divides it.
func SizeText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}
