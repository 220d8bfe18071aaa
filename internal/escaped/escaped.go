package escaped

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Text returns s for a screen. Characters that a screen would not simply show are escaped, such as
// \u202e: those that are hidden or blank, change the direction of text, or move a cursor. Line ends
// and tabs become spaces, and of many combining marks on one letter only the first two stay marks.
func Text(s string) string {
	var b strings.Builder
	marks := 0
	for _, r := range s {
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r) && !blank(r) && marks <= 2:
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
		case unicode.IsPrint(r) && !blank(r) || r == '\n' || r == '\t' || r == '\r':
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

// blank reports whether a character that counts as printable shows nothing: fillers, variation
// selectors, the empty Braille pattern.
func blank(r rune) bool {
	return r >= 0x80 && (r == 0x2800 || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r))
}

// markup escapes what Markdown (CommonMark 0.31, 2.4, with GFM's tables and mathematics) or HTML would
// take for structure inside a line. A backslash keeps a character readable where nothing is rendered; the
// characters that HTML knows become references, which a backslash would not disarm there.
var markup = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`, "|", `\|`, "$", `\$`,
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
)

// Markup returns s for a reader of unknown kind, such as the message of a question in an MCP client:
// whether it is shown as it is, as Markdown or as HTML, its words stay words. It may stand anywhere in
// a line but at its beginning.
func Markup(s string) string { return markup.Replace(Text(s)) }
