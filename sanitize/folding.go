package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many marks a letter may carry: Vietnamese needs two, pointed
// Hebrew and some transcriptions three or four.
const maxMarks = 4

// fullLatin is how far a full-width letter or digit stands above its plain form.
const fullLatin = '\uff21' - 'A'

// folded takes away what hides Latin words from those who search for them: marks
// that strike letters through or pile up on them, and full-width forms where no
// East Asian text is around.
func (f *findings) folded(s string) string {
	o := output{from: s, max: f.max}
	prev, marks := rune(0), 0
	line, asian := -1, false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case isCombining(r):
			if marks++; marks > maxMarks || isOverlay(r) && unicode.Is(unicode.Latin, prev) {
				f.remove(ruleOverlay)
				o.drop(i, i+n)
			}
		case isFullwidth(r):
			if i >= line {
				var start int
				start, line = lineAt(s, i)
				asian = hasAsian(s[start:line])
			}
			if !asian {
				f.remove(ruleFullwidth)
				o.fill(i, i+n, string(r-fullLatin))
			}
			fallthrough
		default:
			prev, marks = r, 0
		}
		i += n
	}
	return o.String()
}

func mayFold(r rune) bool { return isCombining(r) || isFullwidth(r) }

// isCombining reports whether r is of the blocks of marks for Latin and other
// alphabets; marks of scripts that pile them up are of those scripts' blocks.
func isCombining(r rune) bool {
	return r >= 0x0300 && r <= 0x036f && r != 0x034f || r >= 0x1ab0 && r <= 0x1aff || r >= 0x1dc0 && r <= 0x1dff || r >= 0x20d0 && r <= 0x20ff
}

// isOverlay reports whether a mark goes through its letter (Unicode canonical
// combining class 1, and the enclosing marks).
func isOverlay(r rune) bool {
	return r >= 0x0334 && r <= 0x0338 || r >= 0x20d2 && r <= 0x20d3 || r >= 0x20d8 && r <= 0x20da || r >= 0x20dd && r <= 0x20e0 || r >= 0x20e2 && r <= 0x20eb && r != 0x20e3
}

func isFullwidth(r rune) bool {
	return r >= 0xff21 && r <= 0xff3a || r >= 0xff41 && r <= 0xff5a
}

// hasAsian reports whether a line has characters of a script that is written with
// full-width forms.
func hasAsian(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) || r >= 0x3000 && r <= 0x303f
	}) >= 0
}
