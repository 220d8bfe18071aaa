package sanitize

import (
	"strings"
	"unicode/utf8"
)

// sight is what a survey has seen in a text: which steps have to look at it.
type sight uint8

const (
	seesControl  sight = 1 << iota
	seesUnshaped       // characters without a shape
	seesFolded         // marks and full-width letters
	seesToken          // what may begin a control token
	seesAngle          // what may begin a tag
	seesLink           // what may make a link
	seesForeign        // white space that is not ASCII, or a reference to white space
)

// watched marks, by 1, the bytes that can begin something to be found.
var watched = func() (t [256]uint8) {
	for c := range t {
		if isControl(rune(c)) && c < utf8.RuneSelf || c >= utf8.RuneSelf {
			t[c] = 1
		}
	}
	for _, c := range "<[]&_\\`~" {
		t[c] = 1
	}
	return t
}()

// nextWatched returns where the first byte from s[i] on is that can begin something.
func nextWatched(s string, i int) int {
	for ; i+8 <= len(s); i += 8 { // one branch for eight bytes
		if watched[s[i]]|watched[s[i+1]]|watched[s[i+2]]|watched[s[i+3]]|watched[s[i+4]]|watched[s[i+5]]|watched[s[i+6]]|watched[s[i+7]] != 0 {
			break
		}
	}
	for i < len(s) && watched[s[i]] == 0 {
		i++
	}
	return i
}

// survey tells which steps have to look at a text; in doubt, more of them.
func survey(s string) (seen sight) {
	for i := nextWatched(s, 0); i < len(s); i = nextWatched(s, i) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r > 0xad && r < 0x300, r > 0x3000 && r < 0xfd00 && r != 0x3164: // nearly all letters
			case isControl(r):
				seen |= seesControl
			case isForeign(r):
				seen |= seesForeign
				if unshaped(r) {
					seen |= seesUnshaped
				}
			case unshaped(r):
				seen |= seesUnshaped
			case mayFold(r):
				seen |= seesFolded
			case r == fullBar:
				seen |= seesToken
			}
			i += n
			continue
		}
		seen |= seesAt(s, i)
		i++
	}
	return seen
}

// seesAt tells what the watched byte s[i] may begin.
func seesAt(s string, i int) sight {
	next := byte(0)
	if i+1 < len(s) {
		next = s[i+1]
	}
	switch s[i] {
	case '<':
		short := isLetter(next) && (i+3 >= len(s) || !isWord(rune(s[i+2])) || !isWord(rune(s[i+3]))) // no token is
		short = short && !strings.HasPrefix(s[i:], "<s>")
		if !short && (tokenStart[next] || halfToken(s[i:], 1) > 0) && (token(s[i:]) > 0 || turnTag(s[i:])) {
			return seesAngle | seesToken
		}
		if isLetter(next) || next == '/' || next == '!' || next == '?' {
			return seesAngle
		}
	case '[':
		if bracketStart[next] && (token(s[i:]) > 0 || turnTag(s[i:])) {
			return seesToken
		}
	case ']':
		if next == '~' {
			return seesToken
		}
		if next == '(' || next == ':' {
			return seesLink
		}
	case '&':
		if r, _ := char(s[i:]); r != '&' {
			return seesToken
		}
		if _, n := whiteReference(s[i:]); n > 0 {
			return seesForeign
		}
	case '_':
		if next == '_' && tokenAt(s, i) > 0 {
			return seesToken
		}
	case '\\':
		if n, _ := latex(s[i:]); n > 0 {
			return seesLink
		}
	case '`', '~':
		if (i == 0 || s[i-1] != s[i]) && diagram(s[i:]) {
			return seesLink
		}
	default:
		return seesControl
	}
	return 0
}
