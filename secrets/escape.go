package secrets

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Converters write characters in other ways: Markdown puts a backslash before them, HTML
// writes references, JSON and programming languages write escapes, mails and terminals break
// lines. This file finds the secrets of such texts: it undoes the escapes around each place
// where there are any, and maps what is found there back.

// Limits of what is undone.
const (
	maxContext = 512 // bytes on each side of an escape that are searched with it
	maxEscape  = 40  // bytes of an escape
	minBroken  = 20  // characters of a word that a line end breaks
	minPart    = 3   // and of each of its parts
	maxPart    = 256 // characters of a part that are looked at
)

// A seam is a place at which something was undone.
type seam struct {
	from, to int  // the character, in the text without escapes; the same for a line end
	behind   int  // what follows it in the text as it was
	goesOn   bool // a line end that is in the middle of a token, by its looks
}

// An unescaper holds a part of a text without its escapes, or without its line ends.
type unescaper struct {
	source string
	marks  string // of what is undone
	next   [2]int // of each mark, the next place; len(source): none
	start  int    // of the part
	text   []byte
	seams  []seam
}

// Marks begin escapes, or end lines. The two are undone one after the other: where a line
// end is none of a token, the words next to it would hide each other.
const (
	escapes  = "\\&"
	lineEnds = "\n"
)

// An escape is a part of a text that stands for a character, or for nothing.
type escape struct {
	from, to int
	char     string
	goesOn   bool // as in [seam]
}

// find returns the first escape from a place on.
func (u *unescaper) find(from int) (escape, bool) {
	for {
		first := len(u.source)
		for i := range u.marks {
			if u.next[i] < from {
				u.next[i] = len(u.source)
				if n := strings.IndexByte(u.source[from:], u.marks[i]); n >= 0 {
					u.next[i] = from + n
				}
			}
			first = min(first, u.next[i])
		}
		if first == len(u.source) {
			return escape{}, false
		}
		if e := escapeAt(u.source, first); e.to > first && e.from >= from {
			return e, true
		}
		from = first + 1
	}
}

// read reads the part of the text around an escape, with those that follow it closely, and
// returns the next that does not.
func (u *unescaper) read(e escape) (next escape, ok bool) {
	u.start = max(0, e.from-maxContext)
	for n := 0; n < maxRun && u.start > 0 && inToken[u.source[u.start-1]]; n++ {
		u.start--
	}
	u.text, u.seams = u.text[:0], u.seams[:0]
	from := u.start
	for ok = true; ok && e.from <= from+2*maxContext; e, ok = u.find(e.to) {
		u.text = append(u.text, u.source[from:e.from]...)
		at := len(u.text)
		u.text = append(u.text, e.char...)
		u.seams = append(u.seams, seam{at, len(u.text), e.to, e.goesOn})
		from = e.to
	}
	end := min(len(u.source), from+maxContext)
	u.text = append(u.text, u.source[from:runEnd(u.source[:min(len(u.source), end+maxRun)], end)]...)
	return e, ok
}

// place returns where a match is in the text as it was, if what was undone made it. A word
// over a line end is a secret of a certain kind only; if its first part is one by itself,
// the line end has to look as if the word goes on.
func (u *unescaper) place(m match, plain []match) (match, bool) {
	made, goesOn := false, true
	for _, s := range u.seams {
		switch {
		case u.marks == escapes:
			made = made || m.whole[0] <= s.to && s.from <= m.whole[1]
		case m.start < s.from && s.from < m.end && !m.rule.generic && (m.rule.Regex != "" || m.rule.ID == RuleGatewayKey):
			made, goesOn = true, goesOn && s.goesOn
		}
	}
	m.start, m.end = u.before(m.start, false), u.before(m.end, true)
	m.whole = [2]int{u.before(m.whole[0], false), u.before(m.whole[1], true)}
	known := func(p match) bool { return !p.rule.generic && p.start < m.end && m.start < p.end }
	return m, made && (goesOn || !slices.ContainsFunc(plain, known))
}

// before returns where a place in the part was: what begins there, or what ends there.
func (u *unescaper) before(at int, end bool) int {
	i := len(u.seams) - 1
	for i >= 0 && (u.seams[i].to > at || end && u.seams[i].from == at) {
		i--
	}
	if i < 0 {
		return u.start + at
	}
	return u.seams[i].behind + at - u.seams[i].to
}

// escapeAt returns the escape at a mark, or around it; an end of 0: it is none.
func escapeAt(text string, i int) escape {
	switch text[i] {
	case '\n':
		return brokenAt(text, i)
	case '&':
		return referenceAt(text, i)
	}
	if i+1 == len(text) {
		return escape{}
	}
	switch c := text[i+1]; {
	case c == 'u' && strings.HasPrefix(text[i+2:], "{"):
		digits, _, ok := strings.Cut(text[i+3:min(len(text), i+maxEscape)], "}")
		return numbered(i, i+3+len(digits)+1, digits, 16, ok)
	case c == 'u' && i+6 <= len(text):
		return numbered(i, i+6, text[i+2:i+6], 16, true)
	case c == 'x' && i+4 <= len(text):
		return numbered(i, i+4, text[i+2:i+4], 16, true)
	case c == 'n' || c == 'r':
		return escape{from: i, to: i + 2, char: "\n"}
	case c == 't':
		return escape{from: i, to: i + 2, char: "\t"}
	case c > ' ' && c < 0x7f && !isWord(c) || c == '_':
		return escape{from: i, to: i + 2, char: text[i+1 : i+2]}
	}
	return escape{}
}

// numbered is an escape that has the number of a character.
func numbered(from, to int, digits string, base int, ok bool) escape {
	n, err := strconv.ParseUint(digits, base, 21)
	if !ok || err != nil || !utf8.ValidRune(rune(n)) {
		return escape{}
	}
	return escape{from: from, to: to, char: string(rune(n))}
}

// referenceAt returns the character reference of HTML at a place.
func referenceAt(text string, i int) escape {
	rest := text[i:min(len(text), i+maxEscape)]
	if strings.HasPrefix(rest, "&#") {
		digits, base := strings.TrimLeft(rest[2:], "xX"), 10
		if len(digits) < len(rest)-2 {
			base = 16
		}
		n := 0
		for n < len(digits) && (isDigit(digits[n]) || base == 16 && digit[digits[n]] <= 0xf) {
			n++
		}
		to := i + len(rest) - len(digits) + n
		if to < len(text) && text[to] == ';' {
			to++
		}
		return numbered(i, to, digits[:n], base, true)
	}
	end := strings.IndexByte(rest, ';') + 1
	char := html.UnescapeString(rest[:end])
	if end == 0 || len(char) == end || strings.HasSuffix(char, ";") {
		return escape{}
	}
	return escape{from: i, to: i + end, char: char}
}

// brokenAt returns the line end at a place if it breaks a word that may be a token, with the
// sign before it that says so, and with what begins the next line.
func brokenAt(text string, i int) escape {
	from, to := i, i+1
	if from > 0 && text[from-1] == '\r' {
		from--
	}
	if from > 0 && (text[from-1] == '=' || text[from-1] == '\\') {
		from--
	}
	for to < len(text) && to < i+maxEscape && strings.IndexByte(" \t>|*#", text[to]) >= 0 {
		to++
	}
	left, right := from, to
	for left > max(0, from-maxPart) && inWord(text[left-1]) {
		left--
	}
	for right < min(len(text), to+maxPart) && inWord(text[right]) {
		right++
	}
	if from-left < minPart || right-to < minPart || from-left+right-to < minBroken {
		return escape{}
	}
	first, rest := kindsOf(text[left:from]), kindsOf(text[to:right])
	if !first.digit && !rest.digit && !(first.capital && first.small) { // two words, most likely
		return escape{}
	}
	return escape{from: from, to: to, goesOn: rest == kinds{true, true, true} || text[from] == '=' || text[from] == '\\'}
}

// kinds says which kinds of characters are in a word.
type kinds struct{ capital, small, digit bool }

func kindsOf(word string) (k kinds) {
	for i := range len(word) {
		c := word[i]
		k.capital, k.small, k.digit = k.capital || isCapital(c), k.small || c >= 'a' && c <= 'z', k.digit || isDigit(c)
	}
	return k
}

func inWord(c byte) bool { return isWord(c) || c == '-' }
