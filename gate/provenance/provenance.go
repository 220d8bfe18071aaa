package provenance

import (
	"hash/maphash"
	"iter"
	"maps"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

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

// layer is what one or several results taught. Layers grow towards the older
// ones by merging, at least by a factor of mergeFactor each, so that there are
// few of them and each value is copied rarely.
type layer[V any] struct {
	values map[uint64]V
	older  *layer[V]
	total  int // values in this layer and the older ones
}

const mergeFactor = 4

// add returns the layers with one more, in which both makes one of two.
func (l *layer[V]) add(met map[uint64]V, both func(older, newer V) V) *layer[V] {
	if len(met) == 0 {
		return l
	}
	for l != nil && len(l.values) < mergeFactor*len(met) {
		merged := maps.Clone(l.values)
		for k, v := range met {
			if old, ok := merged[k]; ok {
				v = both(old, v)
			}
			merged[k] = v
		}
		met, l = merged, l.older
	}
	total := len(met)
	if l != nil {
		total += l.total
	}
	return &layer[V]{met, l, total}
}

// provenanceSeed keys the hashes of values, for the life of the process, unless there is a sharedKey.
var provenanceSeed = maphash.MakeSeed()

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

// Meet returns the values in a document that the session has met in from, and
// that are new to p. Of a tool's result it takes the content and the structured
// content, of any other document all of it. It keeps at most limit of them.
func (p Provenance) Meet(d doc.Doc, from Source, limit int) Met {
	return Read(p, Reading{From: d, Source: from}, limit)
}

// A Reading is a document that a session reads, and what is known of it.
type Reading struct {
	From    doc.Doc
	Source  Source
	Private bool // what it holds is not for everybody
	// Call is the ID of the call that brought it, Server and Tool are of the tool whose result it
	// is; "" if it is not a result. Said has the operator's labels of the tool.
	Call, Server, Tool string
	Said               ToolLabels
	// Own says that no outsider has chosen whose record the result is, so that the places Own of
	// its tool are of the account holder.
	Own bool
	// Made says that the call made what the result has ids of, and IDs are more ids that it
	// has made: see [Made].
	Made bool
	Used bool // From are arguments of a call, which vouches for none that only a listing has brought up
	IDs  []string
	// Structure reads a text that is no JSON as a document, nil reads none. Origins has
	// the places kept in which values were met.
	Structure func(text string) (doc.Doc, bool)
	Origins   bool
}

// Read is [Provenance.Meet] for a document about which more is known.
func Read(p Provenance, r Reading, limit int) Met {
	n := notes{met: make(map[uint64]Source), from: r.Source, known: p, room: limit, of: &r, used: r.Used && p.shown != nil}
	if r.Source == FromPrompt { // it comes again with each call
		prompt := promptForm + r.From.Text()
		if p.find(prompt) != 0 {
			return Met{}
		}
		n.add(prompt)
	}
	if r.Private {
		n.from |= fromPrivate
	}
	n.document(r.From)
	for _, id := range r.IDs {
		n.add(id)
	}
	return Met{n.met, n.places, n.lists, n.room < 0}
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

// find returns the source of a value in one of its forms.
func (p Provenance) find(form string) (s Source) {
	if p.newest == nil && p.shown == nil {
		return 0
	}
	return p.at(hashOf(form))
}

func hashOf(form string) uint64 {
	if key := sharedKey.Load(); key != nil {
		return sipHash(key, form)
	}
	return maphash.String(provenanceSeed, form)
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

// An Argument is a value among the arguments of a call.
type Argument struct {
	Pointer string // JSON Pointer
	Kind    doc.Kind
	Text    string // of a string
	Source  Source
	// Takes is the kind of the ids that the argument takes; "" if it takes none.
	Takes string
	// Listed says that the value was met at a place of the same server that holds ids of
	// the kind that the argument takes. Own says that it is an identity of the principal.
	Listed, Own bool
	// Near says that the value is a URL of an origin that the user's own words name, of a tool that
	// reads there. It makes reading it trusted, and nothing else that is said of it.
	Near bool
	// Copied says that the value was met in untrusted content only, and that no one comes upon it
	// by chance.
	Copied bool

	// Form is what ids are compared by: the text of a string or a number.
	Form string
}

// Arguments iterates over the strings, numbers, trues and falses of a call's
// arguments, in their order. A name is declared by the input schema in the tool's definition,
// absent if there is none, or by a pointer in the operator's labels, see [For]. A name that
// nothing declares is chosen by the caller like a value: a value below it is as trusted as the
// less trusted of both, and what is empty below it counts as a value, too. Elsewhere an empty
// text says as little as one that is left out. True and false are never met.
func (p Provenance) Arguments(definition, args doc.Doc) iter.Seq[Argument] {
	return func(yield func(Argument) bool) {
		w := arguments{known: p, definition: definition, yield: yield}
		w.walk(args, "", nil)
	}
}

type arguments struct {
	known      Provenance
	definition doc.Doc
	declared   map[string]bool // names in the input schema and the labels; nil until it is needed
	yield      func(Argument) bool
}

// walk goes over a value. Names is what the undeclared names above it come to;
// nil if there are none.
func (w *arguments) walk(d doc.Doc, at string, names *Source) bool {
	empty := true
	switch d.Kind() {
	case doc.Array:
		i := 0
		for e := range d.Elements() {
			if !w.walk(e, at+"/"+strconv.Itoa(i), names) {
				return false
			}
			i++
		}
		empty = i == 0
	case doc.Object:
		for name, v := range d.Members() {
			empty = false
			if !w.walk(v, at+"/"+pointer.Escape(name), w.named(name, names)) {
				return false
			}
		}
	case doc.Null:
	default:
		a := Argument{Pointer: at, Kind: d.Kind(), Text: d.Text(), Source: w.known.Of(d)}
		if a.Kind == doc.String || a.Kind == doc.Number {
			if a.Form = TextOf(d); a.Form == "" && names == nil {
				return true
			}
			w.known.used(&a)
			if words := strings.Count(a.Form, " ") + 1; words > 1 && words <= maxWords && !IsTo(w.known, a) { // Family Reunion is the user's family reunion
				a.Source |= w.known.find(nameForm+strings.ToLower(a.Form)) & FromPrompt
			}
		}
		if names != nil && !names.Trusted() {
			a.Source, a.Own = a.Source.both(*names), false
			a.Listed = a.Listed && !IsTo(w.known, a)
		} else if names != nil {
			a.Source = a.Source.both(*names)
		}
		a.Near = a.Near && (names == nil || names.Trusted())
		a.Copied = !a.Source.Trusted() && a.Source&FromUntrusted != 0 && uncommon(a.Form)
		return w.yield(a)
	}
	if empty && names != nil {
		return w.yield(Argument{Pointer: at, Kind: d.Kind(), Source: *names})
	}
	return true
}

// named adds a name to those above a value.
func (w *arguments) named(name string, above *Source) *Source {
	if w.declared == nil {
		w.declared = make(map[string]bool)
		declaredNames(w.definition.Get("inputSchema"), w.declared)
		w.known.use.names(w.declared)
	}
	if w.declared[name] {
		return above
	}
	s := w.known.OfText(name)
	if above != nil {
		s = s.both(*above)
	}
	return &s
}

// declaredNames collects the names of properties in a schema.
func declaredNames(schema doc.Doc, names map[string]bool) {
	for word, v := range schema.Members() {
		if word == "properties" {
			for name := range v.Members() {
				names[name] = true
			}
		}
		declaredNames(v, names)
	}
	for v := range schema.Elements() {
		declaredNames(v, names)
	}
}
