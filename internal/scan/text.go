package scan

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unseen reports whether a character is not shown. What is between words counts
// as shown.
func unseen(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\t' && r != '\n' && r != '\r'
	case r < 0x7f:
		return false
	case r == utf8.RuneError, unicode.IsSpace(r) && r != 0x85:
		return false
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// A folded text is one in small letters, without what is not shown, and with
// single spaces.
type folded struct {
	text string
	from []int32 // where the bytes of text come from
}

func fold(s string) folded {
	b, from := make([]byte, 0, len(s)), make([]int32, 0, len(s))
	space := false
	for i, r := range s {
		if unseen(r) {
			continue
		}
		if unicode.IsSpace(r) {
			if !space {
				b, from = append(b, ' '), append(from, int32(i))
			}
			space = true
			continue
		}
		space = false
		if r < utf8.RuneSelf {
			b = append(b, lower(byte(r)))
		} else {
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
		for len(from) < len(b) {
			from = append(from, int32(i))
		}
	}
	return folded{string(b), from}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// origin returns which part of the text a part of the folded one comes from.
func (f folded) origin(i, j int) (int, int) {
	return int(f.from[i]), int(f.from[j-1]) + 1
}

const (
	// around is how much of a text is shown on each side of what was found, and
	// maxExcerpt how much at all, in bytes.
	around     = 24
	maxExcerpt = 160
)

// excerpt shows what is at s[i:j] and a little around it, with what cannot be
// seen as U+XXXX.
func excerpt(s string, i, j int) string {
	from := max(0, i-around)
	to := min(len(s), max(j, i+1)+around, from+maxExcerpt)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	text := Visible(s[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(s) {
		text += "…"
	}
	return text
}

// Visible returns s in one line, with U+XXXX for each character that cannot be
// seen.
func Visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return unseen(r) || unicode.IsSpace(r) && r != ' ' }) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case unseen(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// minBase64 is from how many letters on a run without a space is an encoded text
// and not a word or a path.
const minBase64 = 96

// encoded returns where a long encoded text is.
func encoded(s string) (i, j int, ok bool) {
	if len(s) < minBase64 {
		return 0, 0, false
	}
	var kinds [4]bool // small, capital, digit, other
	start := 0
	for k := 0; k <= len(s); k++ {
		kind := -1
		if k < len(s) {
			kind = base64Kind(s[k])
		}
		if kind >= 0 {
			kinds[kind] = true
			continue
		}
		if k-start >= minBase64 && kinds[0] && kinds[1] && kinds[2] {
			return start, k, true
		}
		start, kinds = k+1, [4]bool{}
	}
	return 0, 0, false
}

func base64Kind(c byte) int {
	switch {
	case c >= 'a' && c <= 'z':
		return 0
	case c >= 'A' && c <= 'Z':
		return 1
	case c >= '0' && c <= '9':
		return 2
	case c == '+' || c == '/' || c == '-' || c == '_' || c == '=':
		return 3
	}
	return -1
}

// mixed reports whether a name has letters of more than one of the scripts whose
// letters look like each other's.
func mixed(name string) bool {
	if isASCII(name) {
		return false
	}
	scripts := 0
	for _, script := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee} {
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(script, r) }) {
			scripts++
		}
	}
	return scripts > 1
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
