package provenance

import "slices"

// Labels say what a session has read: a sorted set of at most 64 names.
// Labels only rise. The zero value is the empty set.
type Labels []string

// maxLabels is how many labels a set holds; policies give names to a handful of
// kinds of content.
const maxLabels = 64

// NewLabels returns the set of the given names.
func NewLabels(names ...string) Labels {
	l := slices.Clone(names)
	slices.Sort(l)
	return slices.Compact(l)
}

// Cover reports whether l has every label of m.
func (l Labels) Cover(m Labels) bool {
	for _, name := range m {
		if _, ok := slices.BinarySearch(l, name); !ok {
			return false
		}
	}
	return true
}

// Join returns the union of both sets, and one of them itself if the other adds nothing.
func (l Labels) Join(m Labels) Labels {
	switch {
	case l.Cover(m):
		return l
	case len(l) == 0:
		return m
	}
	return NewLabels(append(slices.Clone(l), m...)...)
}

// TooMany reports whether the set is beyond what a session may hold.
func TooMany(l Labels) bool { return len(l) > maxLabels }

// Untrusted is the label of a session that has read what somebody outside may
// have written.
const Untrusted = "untrusted"

// Private is the label of a session that has read what is not for everybody.
const Private = "private"
