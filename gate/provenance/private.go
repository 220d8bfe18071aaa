package provenance

import (
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/internal/address"
)

// Private reports whether a text holds what the session knows only from a private result: an
// address, a number of at least four digits, a row of words.
func (p Provenance) Private(text string) bool { return p.holdsPrivate(text) }

func (p Provenance) holdsPrivate(text string) bool {
	if p.newest == nil || p.lost { // what is not kept can be in any text
		return p.lost && text != ""
	}
	private := func(form string) bool {
		s := p.find(form)
		return s&fromPrivate != 0 && s&(FromPrompt|FromApproved) == 0
	}
	found := false
	address.In(text, func(a string) { found = found || private(addressForm+a) })
	if found {
		return true
	}
	fingerprints(text, func(print string) bool {
		found = private(print)
		return !found
	})
	if found {
		return true
	}
	for word := range strings.FieldsSeq(text) {
		if word = trimmed(word); telling(word) && (private(word) || slices.ContainsFunc(strings.FieldsFunc(word, mark), private)) {
			return true
		}
	}
	return false
}

// near reports whether a URL has the origin of one in the user's own words, and takes
// nothing along that is private.
func (p Provenance) near(v string) bool {
	origin, rest := originOf(v)
	return origin != "" && p.find(originForm+origin)&FromPrompt != 0 && !strings.ContainsAny(rest, "@\\") && !p.holdsPrivate(rest)
}

// mark reports whether a character is none of a code.
func mark(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// minTelling is how many digits a word has that tells something by itself.
const minTelling = 4

// telling reports whether a word is a code, a number or an id that no one comes upon by chance.
// Dates and times are none.
func telling(word string) bool {
	n := 0
	for i := range len(word) {
		if word[i] >= '0' && word[i] <= '9' {
			n++
		}
	}
	if n < minTelling {
		return false
	}
	_, _, dated := moment(word)
	return !dated
}
