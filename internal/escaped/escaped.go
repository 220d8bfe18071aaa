package escaped

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Text returns s with whatever a screen would not simply show escaped, such as
// \u202e: characters that are hidden, that change the direction of text, or that
// move a cursor. White space becomes spaces.
func Text(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteToASCII(string(r)) // "\x1b", "\u202e", "\U000e0001"
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

// Lines is [Text] for text of several lines.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	return strings.Join(lines, "\n")
}

// JSON returns a JSON document with whatever a screen would not simply show written as \uXXXX, which
// means the same: it can only be in strings.
func JSON(doc []byte) string {
	var b strings.Builder
	for _, r := range string(doc) {
		switch {
		case unicode.IsPrint(r) || r == '\n' || r == '\t' || r == '\r':
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
