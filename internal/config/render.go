package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lines writes the keys of one table. What is zero, or as it is without the key, is left out.
type lines struct {
	b      *bytes.Buffer
	indent string
}

// line writes a key with what is YAML already.
func (l lines) line(key, value string) {
	fmt.Fprintf(l.b, "%s%s: %s\n", l.indent, scalar(key), value)
}

func (l lines) text(key, value, usual string) {
	if value != "" && value != usual {
		l.line(key, scalar(value))
	}
}

func (l lines) number(key string, n int) {
	if n != 0 {
		l.line(key, strconv.Itoa(n))
	}
}

func (l lines) size(key string, n int64) {
	if n != 0 {
		l.line(key, bytesText(n))
	}
}

func (l lines) time(key string, d time.Duration) {
	if d != 0 {
		l.line(key, scalar(short(d)))
	}
}

// under writes a table within the table.
func (l lines) under(key string, write func(lines)) {
	var inner bytes.Buffer
	write(lines{&inner, l.indent + "  "})
	if inner.Len() == 0 {
		l.line(key, "{}")
		return
	}
	fmt.Fprintf(l.b, "%s%s:\n%s", l.indent, scalar(key), inner.Bytes())
}

// column writes a list, a line for each.
func (l lines) column(key string, list []string) {
	if len(list) > 0 {
		fmt.Fprintf(l.b, "%s%s:\n", l.indent, scalar(key))
	}
	for _, s := range list {
		fmt.Fprintf(l.b, "%s  - %s\n", l.indent, scalar(s))
	}
}

// row writes a list in one line.
func (l lines) row(key string, list []string) {
	written := make([]string, len(list))
	for i, s := range list {
		written[i] = scalar(s)
	}
	if len(list) > 0 {
		l.line(key, "["+strings.Join(written, ", ")+"]")
	}
}

func (l lines) block(key string, values map[string]Secret) {
	if len(values) == 0 {
		return
	}
	l.under(key, func(l lines) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			l.line(k, scalar(string(values[k])))
		}
	})
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)
	wordScalar  = regexp.MustCompile(`^(?i:null|true|false|yes|no|on|off|y|n)$`)
)

// scalar returns s as a YAML scalar: as it is where nobody can read it as
// anything but text, else in the quotes of JSON, of which YAML 1.2 is a superset.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !wordScalar.MatchString(s) {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
