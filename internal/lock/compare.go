package lock

import (
	"fmt"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Change is a field of a definition that is not what it was. Old and New are
// what is written there, visible (see [Visible]), with what both have in common
// left out of long texts; "" stands for nothing at all.
type Change struct {
	Pointer string `json:"pointer"` // JSON Pointer into the definition; "" is all of it
	Old     string `json:"old,omitempty"`
	New     string `json:"new,omitempty"`
}

// fields returns field by field how two documents differ. An absent old one has no fields.
func fields(old, now gate.Doc) []Change {
	c := comparison{}
	if old.IsZero() && now.Kind() == doc.Object {
		for _, name := range names(gate.Doc{}, now) {
			c.walk("/"+pointer.Escape(name), gate.Doc{}, now.Get(name))
		}
	} else {
		c.walk("", old, now)
	}
	return c.changes
}

type comparison struct{ changes []Change }

func (c *comparison) walk(at string, old, now gate.Doc) {
	switch {
	case !old.IsZero() && !now.IsZero() && old.Digest() == now.Digest():
	case old.Kind() == doc.Object && now.Kind() == doc.Object:
		for _, name := range names(old, now) {
			c.walk(at+"/"+pointer.Escape(name), old.Get(name), now.Get(name))
		}
	case old.Kind() == doc.Array && now.Kind() == doc.Array && length(old) == length(now):
		a, b := slices.Collect(old.Elements()), slices.Collect(now.Elements())
		for i := range a {
			c.walk(fmt.Sprintf("%s/%d", at, i), a[i], b[i])
		}
	default:
		from, to := contrast(shown(old), shown(now))
		c.changes = append(c.changes, Change{Visible(at), from, to})
	}
}

// names returns the names of the members of both objects, sorted.
func names(a, b gate.Doc) []string {
	set := make(map[string]bool)
	for name := range a.Members() {
		set[name] = true
	}
	for name := range b.Members() {
		set[name] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func length(array gate.Doc) int {
	n := 0
	for range array.Elements() {
		n++
	}
	return n
}

// shown writes a value: a string as it is, and what is not one as JSON.
func shown(d gate.Doc) string {
	if d.Kind() == doc.String {
		return `"` + d.Text() + `"`
	}
	return string(d.Canonical())
}

const (
	maxShown   = 4 << 10 // bytes of a value that are shown
	around     = 60      // bytes before and after a difference in a long text
	maxSpelled = 24      // bytes of a difference up to which its characters are spelled out
)

// contrast makes two texts visible. It shortens what long texts have in common, and spells out a
// difference of a few characters, because letters of different scripts, and different forms of one
// letter, look the same.
func contrast(old, now string) (string, string) {
	if old == "" || now == "" {
		return clip(Visible(old)), clip(Visible(now))
	}
	head, tail := common(old, now)
	from, to := old[head:len(old)-tail], now[head:len(now)-tail]
	write := Visible
	if len(from)+len(to) <= maxSpelled {
		write = spelled
	}
	before, after := old[:head], old[len(old)-tail:]
	if len(before) > 2*around {
		before = "…" + before[boundary(before, len(before)-around):]
	}
	if len(after) > 2*around {
		after = after[:boundary(after, around)] + "…"
	}
	before, after = Visible(before), Visible(after)
	return before + clip(write(from)) + after, before + clip(write(to)) + after
}

// common returns how many bytes at the beginning and at the end two texts have in
// common, in whole characters, marks with their letters.
func common(a, b string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for head > 0 && (within(a, head) || within(b, head)) {
		head--
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && (within(a, len(a)-tail) || within(b, len(b)-tail)) {
		tail--
	}
	return head, tail
}

// within reports whether s cannot be cut at i: in the middle of a character, or
// between a letter and its mark.
func within(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	if !utf8.RuneStart(s[i]) {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return unicode.Is(unicode.M, r)
}

// boundary returns the first place from i on at which s can be cut.
func boundary(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := boundary(s, maxShown)
	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}
