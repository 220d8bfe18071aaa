package provenance

import (
	"iter"
	"slices"
)

const (
	// maxShown bounds the values of a listing that are kept, and those of all that one
	// session was shown. Beyond that every value counts as shown.
	maxShown = 16_384
	// maxListings bounds the listings that a session keeps apart, most of which it shares
	// with others.
	maxListings = 8
)

// Shown are the values in the texts of a listing. Sessions that were shown the same share
// them; they are immutable.
type Shown struct {
	values map[uint64]Source
	all    bool // there were more than are kept
}

// listings are what a session was shown, the newest first. The nil list is nothing.
type listings struct {
	*Shown
	older *listings
	n     int
}

func (l *listings) has(key uint64) bool {
	for ; l != nil; l = l.older {
		if _, ok := l.values[key]; ok || l.all {
			return true
		}
	}
	return false
}

// Show returns what is known with a listing that the session was shown. Its values count
// as met in untrusted content, and no call vouches for them.
func (p Provenance) Show(s *Shown) Provenance {
	if s == nil {
		return p
	}
	n := 0
	for l := p.shown; l != nil; l = l.older {
		if l.Shown == s {
			return p
		}
		n++
	}
	older := p.shown
	if n >= maxListings {
		s, older, n = older.with(s), nil, 0
	}
	p.shown = &listings{s, older, n + 1}
	return p
}

// with joins all listings and one more.
func (l *listings) with(s *Shown) *Shown {
	joined := &Shown{make(map[uint64]Source), s.all}
	for l = (&listings{Shown: s, older: l}); l != nil; l = l.older {
		joined.all = joined.all || l.all
		for key := range l.values {
			joined.values[key] = FromUntrusted
		}
	}
	if joined.all = joined.all || len(joined.values) > maxShown; joined.all {
		joined.values = nil
	}
	return joined
}

// texts are the members of definitions by which things are listed.
var texts = []string{"name", "title", "description", "uri", "uriTemplate"}

// NewShown returns what a listing of definitions shows, each of which was pinned or not.
func NewShown(definitions iter.Seq2[Doc, bool]) *Shown {
	n := notes{met: make(map[uint64]Source), from: FromUntrusted, room: maxShown, of: new(Reading)}
	for d, pinned := range definitions {
		n.listed(d, pinned)
	}
	return &Shown{n.met, n.room < 0}
}

// listed takes the values in the texts of a definition. Of one that is pinned these are the
// addresses alone: its words are those of a task, and somebody has looked at them, or they
// were there from the beginning.
func (n *notes) listed(d Doc, pinned bool) {
	for e := range d.Elements() {
		n.listed(e, pinned)
	}
	for name, v := range d.Members() {
		switch {
		case v.Kind() != String:
			n.listed(v, pinned)
		case !slices.Contains(texts, name):
		case pinned:
			n.addresses(v.Text())
		default:
			n.text(v.Text(), 0)
		}
	}
}
