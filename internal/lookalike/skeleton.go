package lookalike

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// UnicodeVersion is that of the table.
const UnicodeVersion = "15.0.0"

// table.txt has the skeletons of single characters that are not their own, in the order of
// code points: a character, and those of its skeleton, in hexadecimal.
//
//go:embed table.txt
var tableText string

// mapping is an entry of the table.
type mapping struct {
	from rune
	to   string
}

// skeletons are those of single characters.
type skeletons struct {
	table []mapping
	ascii [unicode.MaxASCII + 1]string // of the characters that nearly all names are made of
}

// load reads the table, once.
var load = sync.OnceValue(func() *skeletons {
	s := new(skeletons)
	for line := range strings.Lines(tableText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var text []rune
		for word := range strings.FieldsSeq(line) {
			r, err := strconv.ParseUint(word, 16, 32)
			if err != nil {
				panic(err) // the table is a part of the program
			}
			text = append(text, rune(r))
		}
		s.table = append(s.table, mapping{text[0], string(text[1:])})
	}
	for r := range s.ascii {
		s.ascii[r] = s.of(rune(r))
	}
	return s
})

// Skeleton returns what s is made of but for the choice among characters of one
// shape (UTS 39, section 4): names with equal skeletons look the same. It is for
// comparing, not for showing.
func Skeleton(s string) string { return mapped(s, 0) }

// mapped replaces characters from least on by their skeletons, and leaves out
// what has no shape.
func mapped(s string, least rune) string {
	known, b := load(), make([]byte, 0, len(s)+8)
	for _, r := range s {
		switch {
		case r < least:
			b = append(b, byte(r))
		case r <= unicode.MaxASCII:
			b = append(b, known.ascii[r]...)
		case !unshaped(r):
			b = append(b, known.of(r)...)
		}
	}
	return string(b)
}

// of returns the skeleton of a character.
func (s *skeletons) of(r rune) string {
	if i, ok := slices.BinarySearchFunc(s.table, r, func(m mapping, r rune) int { return cmp.Compare(m.from, r) }); ok {
		return s.table[i].to
	}
	return string(r)
}

// unshaped reports whether a character is ignored by default when it is shown.
func unshaped(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// separators stand between the words of a name. A change from lower to upper case
// does, too.
const separators = "-_."

// keys returns what is left of a name without case, separators and the choice
// among characters of one shape. They are two, since a capital may look like
// another letter than its small one does: I is an l in one, and an i in the other.
func keys(name string) [2]string {
	return [2]string{joined(Skeleton(name)), joined(Skeleton(strings.ToLower(name)))}
}

// joined returns a name without separators, in lower case: some skeletons have a
// capital.
func joined(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case r == '-' || r == '_' || r == '.':
		case r <= unicode.MaxASCII:
			b = append(b, lower(byte(r)))
		default:
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
	}
	return string(b)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// A spelling is a name in small letters of ASCII and digits, without separators.
type spelling struct {
	text   string
	starts uint64 // a bit for each position at which a word begins
}

// spell returns the spelling of a name. It is false if the name is too long or
// too short, or has other letters.
func spell(name string) (spelling, bool) {
	var s spelling
	b := make([]byte, 0, maxNear)
	start, small := true, false
	for _, r := range mapped(name, utf8.RuneSelf) {
		switch {
		case strings.ContainsRune(separators, r):
			start = true
			continue
		case unicode.Is(unicode.Mn, r): // an accent
			continue
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) || len(b) == maxNear:
			return spelling{}, false
		}
		capital := unicode.IsUpper(r)
		if start || small && capital {
			s.starts |= 1 << len(b)
		}
		start, small = false, !capital
		b = append(b, byte(unicode.ToLower(r)))
	}
	s.text = string(b)
	return s, len(b) >= minNear
}

// begins reports whether a word begins at i.
func (s spelling) begins(i int) bool { return s.starts>>i&1 != 0 }

// ends reports whether a word ends before i.
func (s spelling) ends(i int) bool { return i == len(s.text) || s.begins(i) }
