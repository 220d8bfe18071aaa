package sanitize

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// Readers disagree on white space and line ends: HTML knows five characters, Unicode
// many more, and the trim and ^ of JavaScript, in which most renderers are written, a
// third set. This file has the union. Whatever is more than ASCII is foreign: a text
// is looked at once more with each of them in its plain form, see views.

// isSpace reports whether HTML takes a byte for white space.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// isWhite reports whether any reader takes a character for white space.
func isWhite(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r > 0x7f && isForeign(r)
}

// isForeign reports whether a character that is not ASCII is white space to any
// reader.
func isForeign(r rune) bool {
	switch {
	case r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return r == 0x85 || r == 0xa0 || r == 0x1680 || r == 0x180e || r == bom
}

// endsLine reports whether any reader ends a line at a character.
func endsLine(r rune) bool {
	return r >= '\n' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// isDropped reports whether any reader drops a character of a URL.
func isDropped(r rune) bool { return r <= ' ' || isControl(r) || isWhite(r) || unshaped(r) }

// whiteAt returns the white space that s begins with, a character or a reference to
// one, and its length; 0 if there is none.
func whiteAt(s string) (r rune, n int) {
	if s == "" || s[0] > ' ' && s[0] < utf8.RuneSelf && s[0] != '&' {
		return 0, 0
	}
	if s[0] == '&' {
		return whiteReference(s)
	}
	if r, n = utf8.DecodeRuneInString(s); !isWhite(r) {
		return 0, 0
	}
	return r, n
}

// maxEntity bounds a character reference that is looked at, in bytes.
const maxEntity = 40

// whiteReference is whiteAt for references.
func whiteReference(s string) (r rune, n int) {
	if len(s) < 2 || s[1] != '#' && !isLetter(s[1]) {
		return 0, 0
	}
	s = s[:min(len(s), maxEntity)]
	end := strings.IndexByte(s, ';')
	if end < 0 || s[1] != '#' && !whiteNames[s[1:end]] {
		return 0, 0
	}
	if r, _ = utf8.DecodeRuneInString(html.UnescapeString(s[:end+1])); !isWhite(r) {
		return 0, 0
	}
	return r, end + 1
}

// trimWhite returns s without the white space that it begins with, references included.
func trimWhite(s string) string {
	for _, n := whiteAt(s); n > 0; _, n = whiteAt(s) {
		s = s[n:]
	}
	return s
}

// whiteNames are the references to white space that have a name (HTML Living Standard,
// 13.5).
var whiteNames = words(`Tab NewLine nbsp NonBreakingSpace ensp emsp emsp13 emsp14 numsp puncsp thinsp ThinSpace hairsp VeryThinSpace
	MediumSpace ThickSpace`)

// lineEnd returns where the line of s[i] ends.
func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}

// lineAt returns where the line of s[i] begins and ends for the reader that knows
// most line ends.
func lineAt(s string, i int) (start, end int) {
	start, end = strings.LastIndexFunc(s[:i], endsLine)+1, len(s)
	if start > 0 {
		_, n := utf8.DecodeRuneInString(s[start-1:])
		start += n - 1
	}
	if n := strings.IndexFunc(s[i:], endsLine); n >= 0 {
		end = i + n
	}
	return start, end
}

// paragraphEnd returns where the paragraph of s[i] ends for every reader: before a line
// in which there is nothing, or with s.
func paragraphEnd(s string, i int) int {
	for i = lineEnd(s, i); i < len(s); i = lineEnd(s, i+1) {
		if next := strings.TrimLeft(s[i+1:], " \t\r"); next == "" || next[0] == '\n' {
			break
		}
	}
	return i
}

// until returns s up to the first of some characters.
func until(s, ends string) string {
	if i := strings.IndexAny(s, ends); i >= 0 {
		return s[:i]
	}
	return s
}
