package provenance

// A Source says where a session has met a value. It is a set, since a value can
// be met in several places; the empty set is that of a value never met.
type Source uint8

// The sources, in the order of their names.
const (
	FromApproved  Source = 1 << iota // a person approved a call with it
	FromPrompt                       // the user wrote it, as the host application vouches
	FromTrusted                      // a trusted tool returned it, or a call used it before anything untrusted was read
	FromUntrusted                    // it was in a result that an outsider may have written

	fromPrivate // it was in a private result before it was met anywhere else; no policy sees the bit
)

var sourceNames = [...]string{"approved", "prompt", "trusted", "untrusted"}

// Trusted reports whether the value was met in a place into which no outsider can write. It does
// not matter that it was met elsewhere, too: naming what the user has named gains an attacker
// nothing.
func (s Source) Trusted() bool { return s&(FromApproved|FromPrompt|FromTrusted) != 0 }

// Names returns the names of the sources in the set, sorted.
func (s Source) Names() []string {
	names := make([]string, 0, len(sourceNames))
	for i, name := range sourceNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// both returns the source of what is made of two values: it is as trusted as the
// less trusted of them, and as untrusted as the other.
func (s Source) both(other Source) Source {
	if !s.Trusted() || !other.Trusted() {
		return (s | other) & FromUntrusted
	}
	return s | other
}
