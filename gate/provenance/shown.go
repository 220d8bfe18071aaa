package provenance

const (
	// maxShown bounds the values of a listing that are kept, and those of all that one
	// session was shown. Beyond that every value counts as shown.
	maxShown = 16_384
	// maxListings bounds the listings that a session keeps apart. It shares most of them with
	// others.
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
