package doc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	c := canon{t: d.t, out: make([]byte, 0, len(d.Raw()))}
	c.value(d.i)
	return c.out
}

// A canon writes the canonical form of a document, to its end or into a hash.
type canon struct {
	t    *tape
	out  []byte
	hash hash.Hash // nil: all of it stays in out
}

// maxUnhashed is from how many bytes on what is written goes into the hash.
const maxUnhashed = 1 << 10

var hashers = sync.Pool{New: func() any { return &canon{out: make([]byte, 0, 4*maxUnhashed), hash: sha256.New()} }}

// digest returns the hex SHA-256 of the canonical form of value i.
func (t *tape) digest(i uint32) string {
	c := hashers.Get().(*canon)
	defer hashers.Put(c)
	c.t, c.out = t, c.out[:0]
	c.hash.Reset()
	c.value(i)
	c.flush()
	c.t = nil
	var sum [sha256.Size]byte
	var text [2 * sha256.Size]byte
	return string(hex.AppendEncode(text[:0], c.hash.Sum(sum[:0])))
}

func (c *canon) flush() {
	c.hash.Write(c.out)
	c.out = c.out[:0]
}

// raw writes bytes that are canonical as they are.
func (c *canon) raw(b []byte) {
	if c.hash == nil || len(b) < maxUnhashed && len(c.out) < maxUnhashed {
		c.out = append(c.out, b...)
		return
	}
	c.flush()
	c.hash.Write(b)
}

func (c *canon) value(i uint32) {
	t, n := c.t, &c.t.nodes[i]
	text := t.raw[n.start:n.end]
	switch n.kind {
	case String:
		if n.escaped && !shortlyEscaped(text) { // what needs no escape has one notation
			c.out = AppendString(c.out, t.text(i))
			return
		}
		c.raw(text)
	case Number:
		if plainInteger(text) {
			c.raw(text)
			return
		}
		c.out = canonicalNumber(c.out, string(text))
	case Array:
		c.out = append(c.out, '[')
		for j := i + 1; j < n.next; j = t.nodes[j].next {
			if j > i+1 {
				c.out = append(c.out, ',')
			}
			c.value(j)
		}
		c.out = append(c.out, ']')
	case Object:
		c.out = append(c.out, '{')
		var few [smallObject]member
		for k, m := range t.sortedMembers(few[:0], i) {
			if k > 0 {
				c.out = append(c.out, ',')
			}
			c.out = append(AppendString(c.out, m.name), ':')
			c.value(m.value)
		}
		c.out = append(c.out, '}')
	default:
		c.out = append(c.out, text...)
	}
}

// shortlyEscaped reports whether a string, with its quotation marks, has the escapes that
// [AppendString] would write, and no others.
func shortlyEscaped(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return true
		}
		switch b[i+1] {
		case '/':
			return false
		case 'u':
			r, _ := hex4(b[i:])
			if r >= ' ' || b[i+5] >= 'A' && b[i+5] <= 'F' || strings.IndexByte("\b\t\n\f\r", byte(r)) >= 0 {
				return false
			}
		}
		b = b[i+2:]
	}
}

// plainInteger reports whether a number is an integer of so few digits that it has one
// notation.
func plainInteger(b []byte) bool {
	if len(b) > 15 || b[0] == '-' && b[1] == '0' {
		return false
	}
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

type member struct {
	name  string
	value uint32
}

// sortedMembers appends the members of an object in the order of the canonical form.
func (t *tape) sortedMembers(ms []member, i uint32) []member {
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
	for i := plain(s, 0); i < len(s); i = plain(s, done) {
		c := s[i]
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
