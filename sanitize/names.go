package sanitize

import "strings"

// maxName is longer than any name that means something.
const maxName = 24

// names maps names of elements or attributes, which HTML compares without regard to
// the case of their letters.
type names[T any] struct {
	of map[string]T
	// short has the names of up to eight bytes, by a hash of them. Maybe says which first letters
	// and lengths others have: nearly every word is looked up.
	short [1 << shortBits]struct {
		key  uint64
		name T
	}
	maybe ['z' + 1][maxName + 1]bool
}

const shortBits = 9

func namesOf[T any](of map[string]T) *names[T] {
	n := &names[T]{of: of}
	for name, meaning := range of {
		if len(name) > 8 {
			n.maybe[name[0]][len(name)] = true
			continue
		}
		key := shortKey(name)
		i := key * hashing >> (64 - shortBits)
		for n.short[i].key != 0 {
			i = (i + 1) % (1 << shortBits)
		}
		n.short[i].key, n.short[i].name = key, meaning
	}
	return n
}

const hashing = 0x9e3779b97f4a7c15

// shortKey returns a name of up to eight bytes, in lower case, as a number.
func shortKey(s string) (key uint64) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		key = key<<8 | uint64(c)
	}
	return key
}

// get returns what a name means; the zero value for one that means nothing.
func (n *names[T]) get(s string) (meaning T) {
	if s == "" || len(s) > maxName || s[0]|0x20 > 'z' {
		return meaning
	}
	if len(s) <= 8 {
		key := shortKey(s)
		for i := key * hashing >> (64 - shortBits); n.short[i].key != 0; i = (i + 1) % (1 << shortBits) {
			if n.short[i].key == key {
				return n.short[i].name
			}
		}
		return meaning
	}
	if !n.maybe[s[0]|0x20][len(s)] {
		return meaning
	}
	var low [maxName]byte
	for i := 0; i < len(s); i++ {
		low[i] = s[i]
		if s[i] >= 'A' && s[i] <= 'Z' {
			low[i] |= 0x20
		}
	}
	return n.of[string(low[:len(s)])]
}

// words returns the set of the words in a text.
func words(s string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(s) {
		set[word] = true
	}
	return set
}
