package doc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Limits of a document. They are far above what tools use and far below what
// hurts a validator or a policy.
const (
	maxDepth    = 256     // arrays and objects within each other
	maxNumber   = 1 << 10 // bytes of a number; RSA-4096 moduli in decimal have 1,234 digits and travel as strings
	maxExponent = 1000    // of a number, either sign; a float64 ends at 308
	maxDocument = math.MaxUint32 - 1
	smallObject = 8 // up to this many members, names are compared one by one
)

// ErrSurrogate is within the error of [Parse] for a \u escape that is half
// of a surrogate pair: such text has no meaning in Unicode, and parsers differ
// about it. See [ReplaceSurrogates].
var ErrSurrogate = errors.New("a string has half of a surrogate pair")

// A SyntaxError says why, and where, bytes are no acceptable JSON document.
type SyntaxError struct {
	Offset int // in bytes from the start of the document
	Err    error
}

// Error says what is wrong, and where.
func (e *SyntaxError) Error() string { return fmt.Sprintf("JSON at byte %d: %v", e.Offset, e.Err) }
func (e *SyntaxError) Unwrap() error { return e.Err }

// Parse reads one JSON document, strictly: RFC 8259 in valid UTF-8, without
// a byte order mark, without two members of one name in an object, without
// unpaired surrogates and without trailing bytes; at most 256 levels deep, with
// numbers of at most 1,024 bytes and exponents up to 1,000. Two parsers that
// read what it accepts read the same, which makes it safe to judge a document
// here and act on it elsewhere.
//
// Parse keeps b: the caller must not change it afterwards. The error is a
// [*SyntaxError].
func Parse(b []byte) (Doc, error) {
	if len(b) > maxDocument {
		return Doc{}, &SyntaxError{0, fmt.Errorf("the JSON document has %d bytes, more than the %d that are allowed", len(b), int64(maxDocument))}
	}
	scratch := scratches.Get().(*[]node)
	defer scratches.Put(scratch)
	p := parser{b: b, nodes: (*scratch)[:0]}
	err := p.document()
	if cap(p.nodes) <= maxScratch {
		*scratch = p.nodes
	}
	if err != nil {
		return Doc{}, &SyntaxError{p.at, err}
	}
	return Doc{t: &tape{raw: b, nodes: slices.Clone(p.nodes)}}, nil
}

// scratches hold the entries of documents that are being parsed: how many there will be
// is not known before.
var scratches = sync.Pool{New: func() any { return new([]node) }}

// maxScratch bounds the entries that are kept for the next document.
const maxScratch = 1 << 16

func (p *parser) document() error {
	p.space()
	if err := p.value(0); err != nil {
		return err
	}
	p.space()
	if p.at != len(p.b) {
		return errors.New("there is more text after the end of the document")
	}
	return nil
}

// Must is Parse for documents that the program itself has written. It
// panics where Parse returns an error.
func Must(s string) Doc {
	d, err := Parse([]byte(s))
	if err != nil {
		panic(fmt.Sprintf("doc: %v in %q", err, s))
	}
	return d
}

type parser struct {
	b     []byte
	at    int
	nodes []node
}

var errEnd = errors.New("the document ends too early")

func (p *parser) space() {
	for p.at < len(p.b) {
		switch p.b[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) error {
	if p.at == len(p.b) {
		return errEnd
	}
	c := p.b[p.at]
	if depth == maxDepth && (c == '{' || c == '[') {
		return fmt.Errorf("it is more than %d levels deep", maxDepth)
	}
	switch {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.string()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true", Bool)
	case c == 'f':
		return p.literal("false", Bool)
	case c == 'n':
		return p.literal("null", Null)
	default:
		return fmt.Errorf("a JSON value cannot begin with %q", rune(c))
	}
}

// open appends an entry that close completes.
func (p *parser) open(k Kind) int {
	p.nodes = append(p.nodes, node{start: uint32(p.at), kind: k})
	return len(p.nodes) - 1
}

func (p *parser) close(i int) {
	p.nodes[i].end, p.nodes[i].next = uint32(p.at), uint32(len(p.nodes))
}

func (p *parser) literal(word string, k Kind) error {
	if !bytes.HasPrefix(p.b[p.at:], []byte(word)) {
		return fmt.Errorf("unknown word, expected %s", word)
	}
	i := p.open(k)
	p.at += len(word)
	p.close(i)
	return nil
}

func (p *parser) array(depth int) error {
	i := p.open(Array)
	p.at++
	p.space()
	for first := true; p.peek() != ']'; first = false {
		if !first {
			if err := p.expect(','); err != nil {
				return err
			}
		}
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err
		}
		p.space()
	}
	p.at++
	p.close(i)
	return nil
}

func (p *parser) object(depth int) error {
	i := p.open(Object)
	p.at++
	p.space()
	names := names{p: p}
	for first := true; p.peek() != '}'; first = false {
		if !first {
			if err := p.expect(','); err != nil {
				return err
			}
			p.space()
		}
		if p.peek() != '"' {
			return errors.New("the name of a member is not a string")
		}
		start, key := p.at, len(p.nodes)
		if err := p.string(); err != nil {
			return err
		}
		if names.twice(uint32(key)) {
			p.at = start
			return errors.New("an object has two members of the same name")
		}
		p.space()
		if err := p.expect(':'); err != nil {
			return err
		}
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err
		}
		p.space()
	}
	p.at++
	p.close(i)
	return nil
}

// names finds the second member of one name in an object.
type names struct {
	p     *parser
	first [smallObject]uint32
	n     int
	all   map[string]struct{}
}

func (s *names) twice(key uint32) bool {
	t := tape{raw: s.p.b, nodes: s.p.nodes}
	if s.n < smallObject {
		for _, k := range s.first[:s.n] {
			if t.sameText(k, key) {
				return true
			}
		}
		s.first[s.n] = key
		s.n++
		return false
	}
	if s.all == nil {
		s.all = make(map[string]struct{}, 2*smallObject)
		for _, k := range s.first {
			s.all[t.text(k)] = struct{}{}
		}
	}
	name := t.text(key)
	_, dup := s.all[name]
	s.all[name] = struct{}{}
	return dup
}

func (t *tape) sameText(a, b uint32) bool {
	x, y := &t.nodes[a], &t.nodes[b]
	if x.escaped || y.escaped {
		return t.text(a) == t.text(b)
	}
	return bytes.Equal(t.raw[x.start:x.end], t.raw[y.start:y.end])
}

// peek returns the next byte, or 0 at the end, which no caller accepts.
func (p *parser) peek() byte {
	if p.at < len(p.b) {
		return p.b[p.at]
	}
	return 0
}

func (p *parser) expect(c byte) error {
	if p.at == len(p.b) {
		return errEnd
	}
	if p.b[p.at] != c {
		return fmt.Errorf("%q where %q was expected", rune(p.b[p.at]), rune(c))
	}
	p.at++
	return nil
}

func (p *parser) number() error {
	i := p.open(Number)
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	if whole := p.digits(); whole == 0 {
		return errors.New("a number has no digits")
	} else if whole > 1 && p.b[p.at-whole] == '0' {
		return errors.New("a number has a leading zero")
	}
	if p.peek() == '.' {
		p.at++
		if p.digits() == 0 {
			return errors.New("a number has a point but no digits after it")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if err := p.exponent(); err != nil {
			return err
		}
	}
	if p.at-start > maxNumber {
		return fmt.Errorf("a number has more than %d bytes", maxNumber)
	}
	p.close(i)
	return nil
}

func (p *parser) exponent() error {
	if c := p.peek(); c == '+' || c == '-' {
		p.at++
	}
	n := p.digits()
	if n == 0 {
		return errors.New("a number has an exponent without digits")
	}
	exp := 0
	for _, c := range p.b[p.at-n : p.at] {
		if exp = exp*10 + int(c-'0'); exp > maxExponent {
			return fmt.Errorf("a number has an exponent beyond %d", maxExponent)
		}
	}
	return nil
}

func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.b) && p.b[p.at] >= '0' && p.b[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// string reads a string. Plain ASCII, nearly all of what there is, is passed over.
func (p *parser) string() error {
	i := p.open(String)
	p.at++
	for {
		if p.at = plainASCII(p.b, p.at); p.at == len(p.b) {
			return errEnd
		}
		switch c := p.b[p.at]; {
		case c == '"':
			p.at++
			p.close(i)
			return nil
		case c == '\\':
			p.nodes[i].escaped = true
			if err := p.escape(); err != nil {
				return err
			}
		case c < ' ':
			return fmt.Errorf("control character %#02x in a string", c)
		default:
			r, size := utf8.DecodeRune(p.b[p.at:])
			if r == utf8.RuneError && size == 1 {
				return errors.New("invalid UTF-8")
			}
			p.at += size
		}
	}
}

func (p *parser) escape() error {
	if p.at+1 == len(p.b) {
		return errEnd
	}
	switch p.b[p.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at += 2
		return nil
	case 'u':
		r, ok := hex4(p.b[p.at:])
		if !ok {
			return errors.New("a \\u escape without four hexadecimal digits")
		}
		if !utf16.IsSurrogate(r) {
			p.at += 6
			return nil
		}
		low, ok := hex4(p.b[p.at+6:])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return ErrSurrogate
		}
		p.at += 12
		return nil
	default:
		return fmt.Errorf("unknown escape %q", p.b[p.at:p.at+2])
	}
}

// hex4 reads a \uXXXX escape at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape decodes the inside of a string that the parser has accepted.
func unescape(b []byte) string {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			out = append(out, b...)
			break
		}
		out = append(out, b[:i]...)
		b = b[i:]
		switch c := b[1]; c {
		case 'u':
			r, _ := hex4(b)
			b = b[6:]
			if utf16.IsSurrogate(r) {
				low, _ := hex4(b)
				r = utf16.DecodeRune(r, low)
				b = b[6:]
			}
			out = utf8.AppendRune(out, r)
			continue
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default:
			out = append(out, c)
		}
		b = b[2:]
	}
	return unsafe.String(unsafe.SliceData(out), len(out)) // no one else has it
}

// ReplaceSurrogates overwrites, in place, each \u escape that is half of a
// surrogate pair with the escape of U+FFFD, the replacement character, and
// returns how many there were. Servers that cut strings by UTF-16 units send
// such halves; a result is worth more than a refusal, while arguments with them
// are refused.
func ReplaceSurrogates(b []byte) int {
	n := 0
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		r, ok := hex4(b[i:])
		switch {
		case !ok:
			i++ // the escaped character, which may be a backslash
		case !utf16.IsSurrogate(r):
			i += 5
		default:
			low, ok := hex4(b[i+6:])
			if ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				i += 11
				break
			}
			copy(b[i:], `\ufffd`)
			n++
			i += 5
		}
	}
	return n
}
