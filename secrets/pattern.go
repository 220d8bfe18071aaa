package secrets

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pattern is a rule's expression, and where in a text it can match.
//
// The expression is slow; it is run only on the parts of a text that can hold a match. An anchor
// says what they are: around each keyword as far as the expression can reach. Whatever is derived
// here is wider than the truth where it is not exact, so that no match is lost.
type pattern struct {
	re      *regexp.Regexp
	anchors []anchor // each match holds one of them; none: it may be anywhere
}

// An anchor is a place in an expression at which every match has a keyword.
type anchor struct {
	offsets []int   // of the keyword behind the place
	before  []piece // possible characters before the place, the nearest first
	after   []way   // what follows, from the place on
	lead    []*set  // the bytes that the text has at the place, in this order
}

// A way is one of several in which an expression goes on. It shares its first pieces with the one
// before it.
type way struct {
	pieces []piece
	shared int
}

// Limits of the derivation. Past them it goes on with less exact answers.
const (
	maxWords    = 64  // words that a part of an expression can be
	maxBranches = 32  // anchors of a rule
	maxLead     = 16  // bytes that are compared one by one
	maxWays     = 8   // ways in which an expression goes on behind a place
	maxPieces   = 16  // of a way that are looked at
	maxLook     = 256 // bytes behind a place that are looked at before its window is opened
	unbounded   = -1  // no limit to what a part can match

	maxRun   = 4 << 10  // bytes of a window for a part without limit: no secret has more
	maxBlock = 32 << 10 // and for one that takes lines, as the whole of a private key
)

// newPattern compiles an expression of the rule set. They are the library's, and
// every one is compiled by a test.
func newPattern(source string, keywords []string) *pattern {
	p := &pattern{re: regexp.MustCompile(source)}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return p
	}
	if a, ok := anchors(flatten(tree), keywords); ok && len(a) <= maxBranches {
		p.anchors = a
	}
	return p
}

// flatten returns the parts of an expression in order, without groups.
func flatten(e *syntax.Regexp) []*syntax.Regexp {
	switch e.Op {
	case syntax.OpCapture:
		return flatten(e.Sub[0])
	case syntax.OpConcat:
		var parts []*syntax.Regexp
		for _, s := range e.Sub {
			parts = append(parts, flatten(s)...)
		}
		return parts
	default:
		return []*syntax.Regexp{e}
	}
}

// anchors finds the first place at which what the expression matches begins with
// a keyword or has it soon after. Alternatives that are more than words are
// tried one by one; each must have a place.
func anchors(parts []*syntax.Regexp, keywords []string) ([]anchor, bool) {
	for i := range parts {
		if shortest(parts[i]) == 0 {
			continue // a boundary looks at the text before the place
		}
		run := []string{""}
		for j := i; j < len(parts); j++ {
			var ok bool
			if run, ok = product(run, parts[j]); !ok {
				break
			}
			if offsets, ok := contain(run, keywords); ok {
				return []anchor{newAnchor(parts[:i], parts[i:], offsets)}, true
			}
		}
	}
	for i, p := range parts {
		if p.Op != syntax.OpAlternate {
			continue
		}
		var all []anchor
		for _, branch := range p.Sub {
			a, ok := anchors(slices.Concat(parts[:i], flatten(branch), parts[i+1:]), keywords)
			if !ok || len(all) > maxBranches {
				return nil, false
			}
			all = append(all, a...)
		}
		return all, true
	}
	return nil, false
}

// contain returns where the words contain keywords, if each word has one.
func contain(words, keywords []string) (offsets []int, ok bool) {
	for _, w := range words {
		at := -1
		for _, k := range keywords {
			if i := strings.Index(w, strings.ToLower(k)); i >= 0 {
				at = i
				break
			}
		}
		if at < 0 {
			return nil, false
		}
		if !slices.Contains(offsets, at) {
			offsets = append(offsets, at)
		}
	}
	return offsets, true
}

// product appends to each word each word that e can be.
func product(words []string, e *syntax.Regexp) ([]string, bool) {
	more, ok := wordsOf(e)
	if !ok || len(words)*len(more) > maxWords {
		return nil, false
	}
	out := make([]string, 0, len(words)*len(more))
	for _, w := range words {
		for _, m := range more {
			out = append(out, w+m)
		}
	}
	return out, true
}

// wordsOf returns all that e can match, in small letters, if that is little.
func wordsOf(e *syntax.Regexp) ([]string, bool) {
	switch e.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}, true
	case syntax.OpLiteral:
		var b strings.Builder
		for _, r := range e.Rune {
			b.WriteRune(small(r))
		}
		return []string{b.String()}, true
	case syntax.OpCharClass:
		return wordsOfClass(e.Rune)
	case syntax.OpCapture:
		return wordsOf(e.Sub[0])
	case syntax.OpQuest:
		words, ok := wordsOf(e.Sub[0])
		return append(words, ""), ok
	case syntax.OpConcat:
		words, ok := []string{""}, true
		for _, s := range e.Sub {
			if words, ok = product(words, s); !ok {
				return nil, false
			}
		}
		return words, true
	case syntax.OpAlternate:
		var words []string
		for _, s := range e.Sub {
			w, ok := wordsOf(s)
			if !ok {
				return nil, false
			}
			words = append(words, w...)
		}
		return words, true
	default:
		return nil, false
	}
}

func wordsOfClass(ranges []rune) ([]string, bool) {
	var words []string
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > maxWords {
			return nil, false
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if w := string(small(r)); !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words, true
}

// small returns the small letter of r. The two characters outside ASCII that an
// expression without case takes for letters of ASCII become these.
func small(r rune) rune {
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f < utf8.RuneSelf && f >= 'a' {
			return f
		}
	}
	return unicode.ToLower(r)
}

func newAnchor(before, after []*syntax.Regexp, offsets []int) anchor {
	a := anchor{offsets: offsets, lead: lead(after)}
	for _, e := range before {
		a.before = append(a.before, newPiece(e))
	}
	slices.Reverse(a.before)
	var last []*syntax.Regexp
	for _, parts := range ways(after) {
		w := way{}
		for i, e := range parts {
			if w.pieces = append(w.pieces, newPiece(e)); i == w.shared && i < len(last) && last[i] == e {
				w.shared++
			}
		}
		a.after, last = append(a.after, w), parts
	}
	return a
}

// ways returns the ways in which parts can go on. If one of some alternatives has no limit, or
// is the end of the text, each is a way of its own.
func ways(parts []*syntax.Regexp) [][]*syntax.Regexp {
	all := [][]*syntax.Regexp{nil}
	for _, e := range parts {
		branches := []*syntax.Regexp{e}
		if e.Op == syntax.OpAlternate && (longest(e) == unbounded || slices.ContainsFunc(e.Sub, endsText)) && len(all)*len(e.Sub) <= maxWays {
			branches = e.Sub
		}
		var more [][]*syntax.Regexp
		for _, way := range all {
			for _, b := range branches {
				more = append(more, slices.Concat(way, flatten(b)))
			}
		}
		all = more
	}
	return all
}

// lead returns the bytes with which every match of the parts begins, as far as each is one of a set
// and has a certain place.
func lead(parts []*syntax.Regexp) (sets []*set) {
	for _, e := range parts {
		n := 1
		switch e.Op {
		case syntax.OpLiteral:
			for _, r := range e.Rune {
				s, ok := ascii(literal(r, e.Flags))
				if !ok || len(sets) == maxLead {
					return sets
				}
				sets = append(sets, s)
			}
			continue
		case syntax.OpCharClass:
		case syntax.OpRepeat, syntax.OpPlus:
			if e.Op == syntax.OpRepeat {
				n = e.Min
			}
			if e.Sub[0].Op != syntax.OpCharClass {
				return sets
			}
		default:
			return sets
		}
		class := e
		if e.Op != syntax.OpCharClass {
			class = e.Sub[0]
		}
		s, ok := ascii(class.Rune)
		if !ok {
			return sets
		}
		for range n {
			if len(sets) == maxLead {
				return sets
			}
			sets = append(sets, s)
		}
		if e.Op == syntax.OpPlus || e.Op == syntax.OpRepeat && e.Max != e.Min {
			return sets
		}
	}
	return sets
}

// literal returns the ranges of what a character of a literal can match.
func literal(r rune, flags syntax.Flags) []rune {
	ranges := []rune{r, r}
	if flags&syntax.FoldCase != 0 {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			ranges = append(ranges, f, f)
		}
	}
	return ranges
}

// A set of bytes. Those of characters outside ASCII are in it together.
type set [256]bool

func (s *set) add(ranges []rune) {
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1] && r < utf8.RuneSelf; r++ {
			s[r] = true
		}
		if ranges[i+1] >= utf8.RuneSelf {
			for b := utf8.RuneSelf; b < len(s); b++ {
				s[b] = true
			}
		}
	}
}

// ascii returns the set of ranges that have nothing outside ASCII.
func ascii(ranges []rune) (*set, bool) {
	var s set
	s.add(ranges)
	return &s, !s[utf8.RuneSelf]
}

// A piece is what a part of an expression can match at least and at most, all of a set.
type piece struct {
	set      *set
	min, max int  // min is of bytes, max of characters; max may be unbounded
	end      bool // it is the end of the text
}

func newPiece(e *syntax.Regexp) piece {
	p := piece{new(set), shortest(e), longest(e), endsText(e)}
	collect(p.set, e)
	return p
}

// endsText reports whether e is the end of a text.
func endsText(e *syntax.Regexp) bool { return e.Op == syntax.OpEndText }

func collect(s *set, e *syntax.Regexp) {
	switch e.Op {
	case syntax.OpLiteral:
		for _, r := range e.Rune {
			s.add(literal(r, e.Flags))
		}
	case syntax.OpCharClass:
		s.add(e.Rune)
	case syntax.OpAnyChar:
		s.add([]rune{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		s.add([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	}
	for _, sub := range e.Sub {
		collect(s, sub)
	}
}

// longest returns the characters that e can match at most.
func longest(e *syntax.Regexp) int {
	switch e.Op {
	case syntax.OpLiteral:
		return len(e.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpQuest:
		return longest(e.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		return unbounded
	case syntax.OpRepeat:
		n := longest(e.Sub[0])
		if n == unbounded || e.Max < 0 {
			return unbounded
		}
		return n * e.Max
	}
	total := 0
	for _, s := range e.Sub {
		n := longest(s)
		switch {
		case n == unbounded:
			return unbounded
		case e.Op == syntax.OpAlternate:
			total = max(total, n)
		default:
			total += n
		}
	}
	return total
}

// shortest returns the bytes that e matches at least.
func shortest(e *syntax.Regexp) int {
	switch e.Op {
	case syntax.OpLiteral:
		return len(e.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(e.Sub[0])
	case syntax.OpRepeat:
		return e.Min * shortest(e.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, s := range e.Sub {
			n += shortest(s)
		}
		return n
	case syntax.OpAlternate:
		n := shortest(e.Sub[0])
		for _, s := range e.Sub[1:] {
			n = min(n, shortest(s))
		}
		return n
	default:
		return 0
	}
}

// possible reports whether the expression can match around text[at:], as far as
// this is seen from the kinds of bytes that follow, and how many were looked at, of look at
// most. It refuses nearly all places at which a keyword is a word like any other.
func (a *anchor) possible(text string, at, look int) (ok bool, looked int) {
	if len(text)-at < len(a.lead) {
		return false, 0
	}
	for i, s := range a.lead {
		if !s[text[at+i]] {
			return false, 0
		}
	}
	cut := len(text) > at+look
	text = text[:min(len(text), at+look)]
	var passed [maxPieces]struct{ from, to int } // where what follows a piece can begin
	reached := 0
	for _, w := range a.after {
		if reached < w.shared {
			continue // it fails where the one before it did
		}
		from, to := at, at
		if w.shared > 0 {
			from, to = passed[w.shared-1].from, passed[w.shared-1].to
		}
		ok = true
		for reached = w.shared; ok && reached < min(len(w.pieces), maxPieces); reached++ {
			p := &w.pieces[reached]
			if from, ok = p.first(text, from, to); !ok {
				ok = cut && from == len(text) // it may be in what was not looked at
				break
			}
			before := to
			to = max(from, p.forward(text, to))
			looked += to - before
			passed[reached].from, passed[reached].to = from, to
		}
		if ok {
			break
		}
	}
	return ok, looked
}

// first returns the first place at which the piece can end if it begins in
// text[from:to+1]. Otherwise it returns where it gave up.
func (p *piece) first(text string, from, to int) (end int, ok bool) {
	switch {
	case p.end:
		return to, to == len(text)
	case p.min == 0:
		return from, true
	}
	run := 0
	i := from
	for ; i < len(text) && i-run <= to; i++ {
		if !p.set[text[i]] {
			run = 0
			continue
		}
		if run++; run == p.min {
			return i + 1, true
		}
	}
	return i, false
}

// window returns the part of the text in which a match around text[at:] lies, with a character more
// at each side, because an expression may look at its neighbours.
func (a *anchor) window(text string, at int) (from, to int) {
	from, to = at, at
	for _, p := range a.before {
		from = p.backward(text, from)
	}
	for _, w := range a.after {
		end := at
		for _, p := range w.pieces {
			end = p.forward(text, end)
		}
		to = max(to, end)
	}
	from = max(0, from-1)
	for i := 1; i < utf8.UTFMax && from > 0 && !utf8.RuneStart(text[from]); i++ {
		from--
	}
	return from, min(len(text), to+utf8.UTFMax)
}

// reach returns the characters of a window that are the piece's at most.
func (p *piece) reach() int {
	switch {
	case p.max != unbounded:
		return p.max
	case p.set['\n']:
		return maxBlock
	}
	return maxRun
}

// forward returns the last place at which the piece can end if it begins at text[i:]
// or before.
func (p *piece) forward(text string, i int) int {
	left := p.reach()
	for end := min(len(text), i+left*utf8.UTFMax); i < end && p.set[text[i]]; i++ {
		if utf8.RuneStart(text[i]) {
			if left == 0 {
				break
			}
			left--
		}
	}
	return i
}

// backward returns the first place at which the piece can begin if it ends at
// text[:i] or behind.
func (p *piece) backward(text string, i int) int {
	left := p.reach()
	for end := max(0, i-left*utf8.UTFMax); i > end && left > 0 && p.set[text[i-1]]; i-- {
		if utf8.RuneStart(text[i-1]) {
			left--
		}
	}
	return i
}
