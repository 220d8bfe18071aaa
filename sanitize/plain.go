package sanitize

import (
	"strings"
	"unicode/utf8"
)

// watched marks the bytes that can begin something to be found.
var watched = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c >= 0x7f
	}
	t['\t'], t['\n'], t['\r'] = false, false, false
	for _, c := range "<[]&_\\`~" {
		t[c] = true
	}
	return t
}()

// plain reports whether there can be nothing to find in the text, under any
// profile but those that rewrite markup. Nearly all text ends here.
func plain(s string, l Links) bool {
	if mayPad(s) {
		return false
	}
	g := glance{allowed: l}
	for i := 0; i < len(s); {
		c := s[i]
		if !watched[c] {
			i++
			continue
		}
		switch {
		case c == '<':
			if !g.inertAngle(s[i:]) {
				return false
			}
			i++
		case c == '[':
			if i+1 < len(s) && bracketStart[s[i+1]] {
				return false
			}
			i++
		case c == ']', c == '\\', c == '`', c == '~':
			if mayLink(s[i:]) {
				return false
			}
			i++
		case c == '&':
			if r, _ := char(s[i:]); r != '&' {
				return false
			}
			i++
		case c == '_':
			if strings.HasPrefix(s[i:], "__") && len(s) >= i+len(systemWord) && strings.EqualFold(s[i:i+len(systemWord)], systemWord) {
				return false
			}
			i++
		case c < utf8.RuneSelf:
			return false
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if unshaped(r) || isControl(r) || r == fullBar || mayFold(r) {
				return false
			}
			i += n
		}
	}
	return true
}
