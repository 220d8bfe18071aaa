package provenance

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A List is what one place of one result held, if that is several values, each a possible
// destination: the addresses in a text, those that are names of members of an object, or the values
// at one place of each element of an array (/channels/*, /items/*/sender).
type List struct {
	Tool   string   // server__tool
	Call   string   // its ID
	Place  string   // into what the result says
	Values []string // addresses in their one spelling
}

const (
	// maxLists bounds the lists of a session that are kept, the newest ones.
	maxLists = 32
	// maxInList is how many values a list has at most: what a person reads who is asked about
	// all of them. A longer one is not kept.
	maxInList = 10
	// maxReadable bounds one of them, in bytes, so that it is shown whole.
	maxReadable = 128
	// maxPlaces bounds the places of a result that are looked at.
	maxPlaces = 256
)

// newerLists returns lists with newer ones, without the oldest.
func newerLists(older *[]List, newer []List) *[]List {
	if len(newer) == 0 {
		return older
	}
	all := slices.Clone(newer[:min(len(newer), maxLists)])
	if older != nil {
		all = append(all, (*older)[:min(len(*older), maxLists-len(all))]...)
	}
	return &all
}

// A lister collects the lists in one result.
type lister struct {
	at     []byte // JSON Pointer of what is taken
	every  []byte // the same, with * for the elements of arrays
	arrays int    // around it
	all    []listing
	places map[string]int // in all
}

// A listing is a list that is being collected.
type listing struct {
	List
	hidden bool // it has more, or what a question could not show as it is
}

// take takes a value.
func (l *lister) take(d doc.Doc) {
	switch d.Kind() {
	case doc.Number:
		l.whole(TextOf(d))
	case doc.String:
		l.text(TextOf(d))
	case doc.Array:
		i := 0
		l.arrays++
		for e := range d.Elements() {
			l.within(strconv.Itoa(i), "*", e)
			i++
		}
		l.arrays--
	case doc.Object:
		for name, v := range d.Members() {
			if a := address.Of(plain(name)); a != "" {
				l.add(l.at, a)
			}
			l.within(name, name, v)
		}
	}
}

// within takes the values below a value.
func (l *lister) within(name, every string, d doc.Doc) {
	at, all := len(l.at), len(l.every)
	l.at = append(append(l.at, '/'), pointer.Escape(name)...)
	l.every = append(append(l.every, '/'), pointer.Escape(every)...)
	l.take(d)
	l.at, l.every = l.at[:at], l.every[:all]
}

// text takes a text, as the value that it is, or its addresses.
func (l *lister) text(text string) {
	if a := address.Of(text); a != "" {
		l.whole(a)
	} else if !l.addresses(text) && len(text) <= maxReadable && !strings.Contains(text, "\n") {
		l.whole(text)
	}
}

// whole takes a value that is an element of an array by itself.
func (l *lister) whole(v string) {
	if _, _, dated := moment(v); l.arrays > 0 && v != "" && !dated {
		l.add(l.every, v)
	}
}

// addresses takes those in a text, and reports whether there are some.
func (l *lister) addresses(text string) (some bool) {
	address.In(text, func(a string) {
		some = true
		l.add(l.at, a)
	})
	return some
}

// add adds a value to the list of a place.
func (l *lister) add(place []byte, v string) {
	i, ok := l.places[string(place)]
	if !ok {
		if len(l.all) == maxPlaces {
			return
		}
		i = len(l.all)
		l.all = append(l.all, listing{List: List{Place: string(place)}})
		l.places[string(place)] = i
	}
	one := &l.all[i]
	if one.hidden || slices.Contains(one.Values, v) {
		return
	}
	if one.hidden = len(one.Values) == maxInList || len(v) > maxReadable || strings.ContainsFunc(v, hides); one.hidden {
		one.Values = nil
		return
	}
	one.Values = append(one.Values, v)
}

// hides reports whether a character can be taken for another one, or is not seen.
func hides(r rune) bool { return r < ' ' || r > '~' }
