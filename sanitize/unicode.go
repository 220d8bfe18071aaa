package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	zwnj       = '\u200c'
	zwj        = '\u200d'
	softHyphen = '\u00ad'
	blackFlag  = '\U0001f3f4'
	tagEnd     = '\U000e007f'
)

// flags are the subdivision flags in use, as the tags after the black flag
// (Unicode emoji-sequences, RGI_Emoji_Tag_Sequence).
var flags = []string{"gbeng", "gbsct", "gbwls"}

// hidden removes characters that cannot be seen, where they have no business.
func (f *findings) hidden(s string) string {
	o := output{from: s, max: f.max}
	prev := rune(0)                         // the character before, as it stays in the text
	line, rtl, isolated := -1, false, false // up to where it is known what the line has
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unshaped(r) {
			prev = r
			i += n
			continue
		}
		if size := flag(s[i:], prev); size > 0 {
			prev = tagEnd
			i += size
			continue
		}
		if (isMark(r) || isIsolate(r)) && i >= line {
			var start int
			start, line = lineAt(s, i)
			rtl, isolated = hasRTL(s[start:line]), hasIsolates(s[start:line])
		}
		next, _ := utf8.DecodeRuneInString(s[i+n:])
		if belongs(r, prev, next, i == 0, rtl) {
			prev = r
			i += n
			continue
		}
		f.remove(ruleOf(r))
		if r == softHyphen || splitsWord(r, prev, next) || isolated && isIsolate(r) && !unshaped(prev) && !unshaped(next) { // it reads as it looks without it
			o.drop(i, i+n)
		} else {
			o.replace(i, i+n, "hidden text")
		}
		i += n
	}
	return o.String()
}

// splitsWord reports whether a character without a width stands alone between two
// letters of a word.
func splitsWord(r, prev, next rune) bool {
	return ruleOf(r) == ruleZeroWidth && inWord(prev) && inWord(next)
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) && !unshaped(r)
}

// flag returns the length of the tags that make a black flag that of a country
// within a country.
func flag(s string, prev rune) int {
	if prev != blackFlag {
		return 0
	}
	for _, name := range flags {
		tags := ""
		for _, c := range name {
			tags += string(0xe0000 + c)
		}
		if tags += string(tagEnd); strings.HasPrefix(s, tags) {
			return len(tags)
		}
	}
	return 0
}

// isMark reports whether r is a mark of direction.
func isMark(r rune) bool { return r == 0x200e || r == 0x200f || r == 0x061c }

// isIsolate reports whether r begins or ends a stretch with a direction of its own,
// which programs put around what they insert.
func isIsolate(r rune) bool { return r >= 0x2066 && r <= 0x2069 }

// hasIsolates reports whether every such stretch of a line ends in it, and none ends
// that has not begun.
func hasIsolates(line string) bool {
	depth := 0
	for _, r := range line {
		switch {
		case r == 0x2069 && depth == 0:
			return false
		case r == 0x2069:
			depth--
		case isIsolate(r):
			depth++
		}
	}
	return depth == 0
}

// hasRTL reports whether a line has a letter that is written from right to left.
func hasRTL(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool { return unicode.In(r, rightToLeft...) }) >= 0
}

var (
	rightToLeft = []*unicode.RangeTable{unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam}
	// joining are the scripts in which joiners choose the shape of a letter
	// (The Unicode Standard, 23.2).
	joining = []*unicode.RangeTable{
		unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Phags_Pa, unicode.Devanagari, unicode.Bengali,
		unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
		unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Thaana, unicode.Inherited,
	}
	// unspaced are the scripts written without spaces, in which a zero-width one
	// tells where a line may end.
	unspaced = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tai_Tham, unicode.Tibetan}
)

// belongs reports whether a character without a shape has a function between its
// neighbours. At the start of a text a byte order mark has one.
func belongs(r, prev, next rune, start, rtl bool) bool {
	if unshaped(prev) && !(r == zwj && (prev == 0xfe0f || prev == tagEnd)) {
		return false // one of them can mean something, several cannot
	}
	switch {
	case r == bom:
		return start
	case r == zwj:
		return pictorial(prev) && pictorial(next) || unicode.In(prev, joining...) && prev != 0
	case r == zwnj:
		return unicode.In(prev, joining...) && unicode.In(next, joining...)
	case r == 0x200b:
		return unicode.In(prev, unspaced...) && unicode.In(next, unspaced...)
	case isMark(r):
		return rtl
	case r == 0xfe0e || r == 0xfe0f:
		return pictorial(prev) || strings.ContainsRune("#*0123456789", prev)
	case r >= 0xfe00 && r <= 0xfe0d:
		return unicode.In(prev, unicode.Han, unicode.Sm, unicode.Myanmar, unicode.Phags_Pa, unicode.Manichaean)
	case r >= 0xe0100 && r <= 0xe01ef:
		return unicode.Is(unicode.Han, prev)
	case r >= 0x180b && r <= 0x180f:
		return unicode.Is(unicode.Mongolian, prev)
	case r == 0x034f:
		return unicode.Is(unicode.Mn, next)
	case r == 0x115f || r == 0x1160:
		return unicode.Is(unicode.Hangul, prev) || unicode.Is(unicode.Hangul, next)
	}
	return false
}

// pictorial reports whether a character can be part of an emoji.
func pictorial(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sm, unicode.Sk) && r > 0x7f || r == 0xfe0f || r == tagEnd ||
		strings.ContainsRune("©®‼⁉〰〽ℹ", r)
}

func ruleOf(r rune) string {
	switch {
	case r >= 0xe0000 && r <= 0xe007f:
		return ruleTag
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return ruleVariation
	case r >= 0x200b && r <= 0x200d, r == 0x2060, r == bom:
		return ruleZeroWidth
	case isMark(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return ruleBidi
	}
	return ruleInvisible
}
