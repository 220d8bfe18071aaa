package doc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Canonical returns the canonical form of the document after RFC 8785 (JCS):
// no white space, members sorted by the UTF-16 units of their names, strings
// and numbers in one notation. Where JCS would round a number to a float64 the
// number keeps its digits instead, so that two documents with different values
// never have one digest. It returns nil for an absent document.
func (d Doc) Canonical() []byte {
	if d.t == nil {
		return nil
	}
	return d.t.canonical(make([]byte, 0, len(d.Raw())), d.i)
}

func (t *tape) canonical(out []byte, i uint32) []byte {
	n := &t.nodes[i]
	switch n.kind {
	case String:
		if !n.escaped { // what needs no escape has one notation
			return append(out, t.raw[n.start:n.end]...)
		}
		return AppendString(out, t.text(i))
	case Number:
		return canonicalNumber(out, string(t.raw[n.start:n.end]))
	case Array:
		out = append(out, '[')
		for j := i + 1; j < n.next; j = t.nodes[j].next {
			if j > i+1 {
				out = append(out, ',')
			}
			out = t.canonical(out, j)
		}
		return append(out, ']')
	case Object:
		out = append(out, '{')
		for k, m := range t.sortedMembers(i) {
			if k > 0 {
				out = append(out, ',')
			}
			out = append(AppendString(out, m.name), ':')
			out = t.canonical(out, m.value)
		}
		return append(out, '}')
	default:
		return append(out, t.raw[n.start:n.end]...)
	}
}

type member struct {
	name  string
	value uint32
}

func (t *tape) sortedMembers(i uint32) []member {
	ms := make([]member, 0, min(smallObject, (t.nodes[i].next-i)/2))
	for j := i + 1; j < t.nodes[i].next; j = t.nodes[j+1].next {
		ms = append(ms, member{t.view(j), j + 1})
	}
	slices.SortFunc(ms, func(a, b member) int { return compareUTF16(a.name, b.name) })
	return ms
}

// compareUTF16 orders strings by their UTF-16 units (RFC 8785, 3.2.3). That
// differs from the order of their bytes only above U+D7FF.
func compareUTF16(a, b string) int {
	if low(a) && low(b) {
		return strings.Compare(a, b)
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// low reports whether all characters of s are below U+D000: their UTF-8 begins
// with a byte below that of U+D000.
func low(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xED {
			return false
		}
	}
	return true
}

func canonicalNumber(out []byte, s string) []byte {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !exact(s, f) {
		return append(out, plainNumber(s)...)
	}
	return appendES6(out, f)
}

// exact reports whether the shortest decimal of f has the value of s.
func exact(s string, f float64) bool {
	if len(s) <= 15 && !strings.ContainsAny(s, "eE") {
		return true // a float64 holds any 15 decimal digits
	}
	return plainNumber(s) == plainNumber(strconv.FormatFloat(f, 'e', -1, 64))
}

// plainNumber gives a number that no float64 holds one notation: digits
// without trailing or leading zeros, and an exponent.
func plainNumber(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	exp := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp, _ = strconv.Atoi(s[i+1:])
		s = s[:i]
	}
	if i := strings.IndexByte(s, '.'); i >= 0 {
		exp -= len(s) - i - 1
		s = s[:i] + s[i+1:]
	}
	s = strings.TrimLeft(s, "0")
	trimmed := strings.TrimRight(s, "0")
	exp += len(s) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	if exp >= 0 && exp <= 64 { // integers, the usual case, stay readable
		return sign + trimmed + strings.Repeat("0", exp)
	}
	return sign + trimmed + "e" + strconv.Itoa(exp)
}

// appendES6 writes f as ECMAScript does (RFC 8785, 3.2.2.3).
func appendES6(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0')
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	s := strconv.AppendFloat(nil, f, format, -1, 64)
	if format == 'e' { // e-07 is e-7
		if n := len(s); n >= 4 && s[n-4] == 'e' && s[n-2] == '0' {
			s = append(s[:n-2], s[n-1])
		}
	}
	return append(out, s...)
}

const hexDigits = "0123456789abcdef"

// AppendString writes s as a JSON string with no more escapes than needed
// (RFC 8785, 3.2.2.2).
func AppendString(out []byte, s string) []byte {
	out = append(out, '"')
	done := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[done:i]...)
		done = i + 1
		if k := bytes.IndexByte([]byte("\b\t\n\f\r\"\\"), c); k >= 0 {
			out = append(out, '\\', `btnfr"\`[k])
		} else {
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(out, s[done:]...), '"')
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
