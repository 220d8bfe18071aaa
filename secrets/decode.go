package secrets

import (
	"strings"
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
	minPairs   = 12 // bytes that are written one by one
)

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
	for i := 0; i+2 < len(text); i++ {
		if isWord(text[i+2]) || !isPair(text, i) || i > 0 && isHex(text[i-1]) {
			continue
		}
		start, end := i, i
		if i >= 2 && text[i-2] == '0' && text[i-1]|0x20 == 'x' {
			start = i - 2
		}
		if *buffer, end = pairs((*buffer)[:0], text, start); len(*buffer) >= minPairs {
			f(start, end, *buffer)
		}
		i = max(i, end-1)
	}
}

// pairs appends the text of bytes that are written one by one, such as 67:68:70 or 0x67, 0x68, as
// far as it is text, and returns where they end.
func pairs(to []byte, text string, at int) (out []byte, end int) {
	p := plain{to: to}
	for end = at; len(p.to) < maxEncoded; {
		if strings.HasPrefix(text[at:], "0x") || strings.HasPrefix(text[at:], "0X") {
			at += 2
		}
		if !isPair(text, at) || at+2 < len(text) && isHex(text[at+2]) || !p.add(digit[text[at]]<<4|digit[text[at+1]]) {
			break
		}
		at += 2
		end = at
		for at < len(text) && at < end+3 && strings.IndexByte(" :,-\n\r\t", text[at]) >= 0 {
			at++
		}
		if at == end {
			break
		}
	}
	return p.to, end
}

// isPair reports whether two digits of hex are at text[i:], isHex whether a character is one.
func isPair(text string, i int) bool {
	return i+1 < len(text) && digit[text[i]]|digit[text[i+1]] <= 0xf
}

func isHex(c byte) bool { return digit[c] <= 0xf }

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

// plain gathers bytes as long as they are text: UTF-8, or ASCII in UTF-16.
type plain struct {
	to   []byte
	rest int  // bytes that are left of a character outside ASCII
	n    int  // bytes so far
	mark byte // of the order of bytes, its first half
	wide int  // 1 if every odd byte is zero, 2 if every even byte is
}

// addWide is add of a byte of UTF-16, or of its mark.
func (p *plain) addWide(c byte) bool {
	switch {
	case p.n == 1 && c == 0:
		p.wide = 1
	case p.n == 1:
		p.mark = c
	case p.n == 2 && p.wide == 0:
		switch {
		case p.mark == 0xfe && c == 0xff:
			p.wide = 1
		case p.mark == 0xff && c == 0xfe, p.mark == 0 && c == 0:
			p.wide = 2
		default:
			return false
		}
	case p.n%2 == p.wide%2:
		return c == 0
	case c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t':
		return false
	default:
		p.to = append(p.to, c)
	}
	return true
}

// add appends a byte, or reports that text does not go on like this.
func (p *plain) add(c byte) bool {
	p.n++
	switch {
	case p.wide > 0 || p.mark > 0 || p.n <= 2 && (c == 0 || c >= 0xfe):
		return p.addWide(c)
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
