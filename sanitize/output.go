package sanitize

import (
	"slices"
	"strings"
)

// output builds a changed text from pieces of the old one. Until the first
// change it holds nothing.
type output struct {
	from string
	last int // from[:last] is in b
	max  int // bounds the changed text, in bytes; zero sets no bound
	b    strings.Builder
}

// tooLong is in the place of a text that would be longer than its bound.
const tooLong = "[removed: text that its markers make longer than limits.result]"

// replace puts a marker of a class in the place of from[i:j].
func (o *output) replace(i, j int, class string) {
	if o.over() {
		return
	}
	o.copy(i)
	marker := "[removed: " + class + "]"
	if !strings.HasSuffix(o.tail(len(marker)), marker) {
		o.b.WriteString(marker)
	}
	o.last = j
}

// fill puts text in the place of from[i:j].
func (o *output) fill(i, j int, text string) {
	if o.over() {
		return
	}
	o.copy(i)
	o.b.WriteString(text)
	o.last = j
}

// insert puts text before from[i].
func (o *output) insert(i int, text string) { o.fill(i, i, text) }

// drop leaves from[i:j] out without a marker of its own.
func (o *output) drop(i, j int) { o.fill(i, j, "") }

func (o *output) copy(i int) {
	if o.b.Cap() == 0 { // it grows little, nearly always
		o.b.Grow(len(o.from) + len(o.from)/8 + len("[removed: hidden text]"))
	}
	o.b.WriteString(o.from[o.last:i])
}

func (o *output) tail(n int) string {
	s := o.b.String()
	return s[max(0, len(s)-n):]
}

func (o *output) String() string {
	if o.last == 0 && o.b.Len() == 0 {
		return o.from
	}
	if o.over() {
		return tooLong
	}
	o.copy(len(o.from))
	return o.b.String()
}

// over reports whether the changed text is beyond its bound, or would be with the rest.
func (o *output) over() bool {
	return o.max > 0 && o.b.Len()+len(o.from)-o.last > max(o.max, len(o.from))
}

// An edit puts text into another, before at, because of a rule.
type edit struct {
	at   int
	text string
	rule string
}

// ordered returns edits by place, the first of each place.
func ordered(edits []edit) []edit {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	return slices.CompactFunc(edits, func(a, b edit) bool { return a.at == b.at })
}

// apply puts edits, ordered by place, into a text; max is that of an output.
func apply(s string, edits []edit, max int) string {
	o := output{from: s, max: max}
	for _, e := range edits {
		o.insert(e.at, e.text)
	}
	return o.String()
}
