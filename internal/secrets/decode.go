package secrets

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits of decoding.
const (
	maxDepth   = 2       // encodings within each other
	maxEncoded = 1 << 20 // bytes of an encoded segment; what is behind them is not decoded
	minBase64  = 16      // characters of a segment
	minHex     = 32
	minLine    = 60 // of encoded text that goes on in the next line
	minText    = 8  // bytes of decoded text that are worth a look
)

// decoded appends a match for each encoded segment in which there is a secret: the
// segment as a whole, for a part of it cannot be told apart.
func (s *Scanner) decoded(all []match, path, text string, depth int) []match {
	buffer := bufferPool.Get().(*[]byte)
	defer bufferPool.Put(buffer)
	segments(text, func(start, end int, plain []byte) {
		inner := s.scan(path, string(plain), depth+1)
		if len(inner) == 0 {
			return
		}
		i := max(0, slices.IndexFunc(inner, func(m match) bool { return !s.report[m.rule.order] }))
		all = append(all, match{rule: inner[i].rule, start: start, end: end, whole: [2]int{start, end}, secret: inner[i].secret})
	}, buffer)
	return all
}

// bufferPool holds what segments decode to.
var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// segments calls f for each part of the text that is encoded text. What f is
// given is valid until it returns.
func segments(text string, f func(start, end int, text []byte), buffer *[]byte) {
	for end := 0; ; {
		i := strings.IndexByte(text[end:], '%')
		if i < 0 {
			break
		}
		start := end + i
		for start > end && inPercent[text[start-1]] {
			start--
		}
		end += i
		for end < len(text) && inPercent[text[end]] {
			end++
		}
		if *buffer = percent((*buffer)[:0], text[start:min(end, start+maxEncoded)]); len(*buffer) >= minText {
			f(start, end, *buffer)
		}
	}
	for start, end := next(text, 0); end > 0; start, end = next(text, end) {
		*buffer = fromHexOrBase64((*buffer)[:0], text[start:min(end, start+maxEncoded)])
		if len(*buffer) >= minText {
			f(start, end, *buffer)
		}
	}
}

var (
	inPercent = bytesOf("%._~+=-")
	inBase64  = bytesOf("+/-_")
)

// bytesOf returns the set of letters, digits and others.
func bytesOf(others string) *set {
	var s set
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + others) {
		s[c] = true
	}
	return &s
}

// next returns the next run of minBase64 or more characters of base64, with the
// padding behind it; or an end of 0. It looks at every minBase64th character: no
// run lies between two.
func next(text string, from int) (start, end int) {
	for i := from + minBase64 - 1; i < len(text); i += minBase64 {
		if !inBase64[text[i]] {
			continue
		}
		start = i
		for start > from && inBase64[text[start-1]] {
			start--
		}
		if end = lines(text, start); end-start < minBase64 {
			i = end
			continue
		}
		for n := 0; n < 2 && end < len(text) && text[end] == '='; n++ {
			end++
		}
		return start, end
	}
	return 0, 0
}

// lines returns where a run of base64 ends that begins at text[start:], with the
// lines that follow on full ones.
func lines(text string, start int) (end int) {
	for {
		line := start
		for start < len(text) && inBase64[text[start]] {
			start++
		}
		if start == line {
			return end
		}
		end = start
		start += len(lineEnd(text[start:]))
		if end-line < minLine || start == end {
			return end
		}
	}
}

func lineEnd(text string) string {
	switch {
	case strings.HasPrefix(text, "\n"):
		return text[:1]
	case strings.HasPrefix(text, "\r\n"):
		return text[:2]
	}
	return ""
}

// fromHexOrBase64 appends the text that a run of characters encodes, as far as it
// is text.
func fromHexOrBase64(to []byte, run string) []byte {
	if len(run) >= minHex {
		if out := fromHex(to, run); len(out) >= minText {
			return out
		}
	}
	return fromBase64(to, run)
}

func fromHex(to []byte, run string) []byte {
	p := plain{to: to}
	for i := 0; i+1 < len(run); i += 2 {
		high, low := digit[run[i]], digit[run[i+1]]
		if high|low > 0xf || !p.add(high<<4|low) {
			break
		}
	}
	return p.to
}

// fromBase64 reads both alphabets, and lines. It stops at what is no text: nearly
// all long words of a text do in their first four characters.
func fromBase64(to []byte, run string) []byte {
	p := plain{to: to}
	bits, n := uint32(0), 0
	for i := range len(run) {
		v := sextet[run[i]]
		if v > 0x3f {
			if run[i] == '=' {
				break
			}
			continue // the end of a line
		}
		bits, n = bits<<6|uint32(v), n+6
		if n >= 8 {
			n -= 8
			if !p.add(byte(bits >> n)) {
				break
			}
		}
	}
	return p.to
}

// digit and sextet are the values of characters; 0xff of those that have none.
var digit, sextet = values("0123456789abcdef", "0123456789ABCDEF"), values(
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

func values(alphabets ...string) (v [256]byte) {
	for i := range v {
		v[i] = 0xff
	}
	for _, a := range alphabets {
		for i := range len(a) {
			v[a[i]] = byte(i)
		}
	}
	return v
}

// plain gathers bytes as long as they are text.
type plain struct {
	to   []byte
	rest int // bytes that are left of a character outside ASCII
}

// add appends a byte, or reports that text does not go on like this.
func (p *plain) add(c byte) bool {
	switch {
	case p.rest > 0:
		if utf8.RuneStart(c) {
			return false
		}
		p.rest--
	case c >= 0xf0 && c <= 0xf4:
		p.rest = 3
	case c >= 0xe0 && c < 0xf0:
		p.rest = 2
	case c >= 0xc2 && c < 0xe0:
		p.rest = 1
	case c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t':
		return false
	}
	p.to = append(p.to, c)
	return true
}

// percent appends what is written with percent signs, if anything is. What is not
// well-formed stands for itself.
func percent(to []byte, run string) []byte {
	escaped := false
	for i := 0; i < len(run); i++ {
		if run[i] == '%' && i+2 < len(run) {
			if high, low := digit[run[i+1]], digit[run[i+2]]; high|low <= 0xf {
				to, i, escaped = append(to, high<<4|low), i+2, true
				continue
			}
		}
		to = append(to, run[i])
	}
	if !escaped || !utf8.Valid(to) {
		return to[:0]
	}
	return to
}
