package provenance

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
)

// Provenance is what a session knows of where values came from. It is immutable:
// [Provenance.Join] returns another one, which shares what has not changed. The
// zero Provenance knows nothing.
//
// Values are compared whole, and in a form in which spellings of one thing are equal: numbers,
// dates and times of day, e-mail addresses, account numbers, URLs. They are kept as keyed hashes of
// 64 bits, with a key that no outsider knows, so that a value takes some 20 bytes however long it
// is. Texts are kept of short lists only: see [List].
type Provenance struct {
	newest   *layer[Source]
	places   *layer[[]Origin] // of the newest values
	lists    *[]List          // the newest first; never changed
	shown    *listings        // that the session was shown
	lost     bool
	approved bool // every value counts as approved
	use      *use // what more holds for the arguments of one call; nil for none
}

// Len returns how many values are kept.
func (p Provenance) Len() int {
	if p.newest == nil {
		return 0
	}
	return p.newest.total
}

// Equal reports whether both are one state, not whether they happen to know the
// same.
func (p Provenance) Equal(q Provenance) bool { return p == q }

// Lost returns what remains when more was read than could be kept: what is known
// stays known, and everything counts as met in untrusted content as well.
func (p Provenance) Lost() Provenance {
	p.lost = true
	return p
}

// Approve returns what is known when every value that is asked for counts as
// approved as well.
func Approve(p Provenance) Provenance {
	p.approved = true
	return p
}

// Met are the values in one document. The zero Met are none.
type Met struct {
	values map[uint64]Source
	places map[uint64][]Origin
	lists  []List
	more   bool // than were to be kept
}

// Join returns what is known with the values that were met. It is false if they
// were more than could be kept, or limit values are kept already; then not all
// of them are known.
func (p Provenance) Join(m Met, limit int) (Provenance, bool) {
	if p.Len()+len(m.values) > limit {
		return p, false
	}
	p.newest = p.newest.add(m.values, func(a, b Source) Source { return a | b })
	p.places = p.places.add(m.places, newerFirst).newest(maxOrigins)
	p.lists = newerLists(p.lists, m.lists)
	return p, !m.more
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

// WasShown reports whether the session was shown a listing.
func (p Provenance) WasShown() bool { return p.shown != nil }

// find returns the source of a value in one of its forms.
func (p Provenance) find(form string) (s Source) {
	if p.newest == nil && p.shown == nil {
		return 0
	}
	return p.at(hashOf(form))
}

func (p Provenance) at(key uint64) (s Source) {
	for l := p.newest; l != nil; l = l.older {
		s |= l.values[key]
	}
	if p.shown.has(key) {
		s |= FromUntrusted
	}
	return s
}

// Of returns the source of a string or a number: of the value as a whole, or of
// a date and a time of day, or of several addresses, as the least trusted of the
// parts. Anything else was never met.
func (p Provenance) Of(leaf doc.Doc) Source {
	switch leaf.Kind() {
	case doc.Number:
		return p.find(numberForm(string(leaf.Raw()))) | p.any()
	case doc.String:
		return p.OfText(leaf.Text())
	default:
		return p.any()
	}
}

// OfText is [Provenance.Of] for a text.
func (p Provenance) OfText(text string) Source {
	text = plain(text)
	if text == "" {
		return p.any()
	}
	s := p.find(text) | p.any()
	if !digits(text) { // an identifier of digits is no amount: "12" is not meant by 12.00
		switch number, of := amount(text), currencyOf(text); {
		case number == "":
		case of != "": // 100 USD is not 100 EUR
			s |= p.find(number+" "+of) | p.find(number+bareAmount)
		default:
			s |= p.find(number)
		}
	}
	for _, form := range forms(text) {
		s |= p.part(form)
	}
	if bare := strings.TrimRight(strings.TrimLeft(text, "#@"), "/"); bare != text && bare != "" {
		s |= p.find(bare) & FromPrompt // the user says bob or docs, and the tool gets @bob or docs/
	}
	if s.Trusted() {
		return s
	}
	var whole Source
	for i, part := range parts(text) {
		if one := p.part(part); i == 0 {
			whole = one
		} else {
			whole = whole.both(one)
		}
	}
	return s | whole
}

// part returns the source of a value in one of its forms. A date is known, too,
// if its day was named without a year.
func (p Provenance) part(form string) Source {
	s := p.find(form)
	if form[:1] == dateForm {
		s |= p.find(dateForm + form[len(dateForm)+len("2006-"):])
	}
	return s
}

// any returns the source that every value has.
func (p Provenance) any() (s Source) {
	if p.lost {
		s |= FromUntrusted
	}
	if p.approved {
		s |= FromApproved
	}
	return s
}

// Carried returns the addresses in a text to which it could lead a reader, with
// their sources: URLs, e-mail addresses and account numbers, in one spelling each.
func (p Provenance) Carried(text string) map[string]Source {
	var carried map[string]Source
	address.In(text, func(a string) {
		if carried == nil {
			carried = make(map[string]Source)
		}
		carried[a] = p.find(addressForm+a) | p.any()
	})
	return carried
}

func (p Provenance) brought(met Source, text string) bool {
	outside := func(s Source) bool { return s != 0 && !s.Trusted() }
	if outside(met) {
		return true
	}
	for _, s := range p.Carried(text) {
		if outside(s) {
			return true
		}
	}
	return false
}
