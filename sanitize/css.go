package sanitize

import (
	"strings"
	"unicode/utf8"
)

// loaders are the functions and rules of CSS that fetch what they name.
var loaders = []string{"url(", "image-set(", "image(", "src(", "@import", "cross-fade("}

// readCSS returns what may be URLs that a style fetches. It reads declarations, or a value of
// one, with escapes read (CSS Syntax 3). Comments stay: a string may have what looks like one.
func readCSS(value string) (targets []string) {
	v := plainCSS(value)
	for _, f := range loaders {
		if strings.Contains(v, f) {
			return strings.FieldsFunc(withoutControls(v), func(r rune) bool { return isWhite(r) || strings.ContainsRune("\"'(),", r) })
		}
	}
	return nil
}

// plainCSS returns CSS in lower case, with its escapes read.
func plainCSS(s string) string {
	if !strings.Contains(s, `\`) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		r, n := cssEscape(s[i+1:])
		if r >= ' ' {
			b.WriteRune(r)
		}
		i += 1 + n
	}
	return strings.ToLower(b.String())
}

// cssEscape reads what follows a backslash, and returns its length; 0 for a line
// end, which is nothing.
func cssEscape(s string) (r rune, n int) {
	for n < len(s) && n < 6 {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] < '0' || d < 0 {
			break
		}
		r = r*16 + rune(d)
		n++
	}
	if n == 0 {
		r, n = utf8.DecodeRuneInString(s)
		return r, n
	}
	if n < len(s) && isSpace(s[n]) {
		n++
	}
	return r, n
}

func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, s)
}
