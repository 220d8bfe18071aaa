package escaped

import (
	"strconv"
	"strings"
	"unicode"
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
