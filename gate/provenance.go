package gate

import (
	"hash/maphash"
	"iter"
	"maps"
	"strconv"

	"github.com/wasmgate/wasmgate/gate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/address"
)

// A Source says where a session has met a value. It is a set, since a value can
// be met in several places; the empty set is that of a value never met.
type Source uint8

// The sources, in the order of their names.
const (
	FromApproved  Source = 1 << iota // a person approved a call with it
	FromPrompt                       // the user wrote it, as the host application vouches
	FromTrusted                      // a trusted tool returned it, or a call used it before anything untrusted was read
	FromUntrusted                    // it was in a result that somebody outside may have written
)

var sourceNames = [...]string{"approved", "prompt", "trusted", "untrusted"}

// Trusted reports whether the value was met in a place into which nobody outside
// can write. That it was met elsewhere, too, does not matter: who names what the
// user has named gains nothing.
func (s Source) Trusted() bool { return s&^FromUntrusted != 0 }

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
// Values are compared whole, and in a form in which spellings of one thing are
// equal: numbers, dates and times of day, e-mail addresses, account numbers, URLs.
// They are kept as keyed hashes of 64 bits, of which nobody outside knows the key,
// so that a value takes some 20 bytes however long it is.
type Provenance struct {
	newest   *layer
	shown    *listings // that the session was shown
	lost     bool
	approved bool // every value counts as approved
}

// layer is what one or several results taught. Layers grow towards the older
// ones by merging, at least by a factor of mergeFactor each, so that there are
// few of them and each value is copied rarely.
type layer struct {
	values map[uint64]Source
	older  *layer
	total  int // values in this layer and the older ones
}

const mergeFactor = 4

// provenanceSeed keys the hashes of values, for the life of the process.
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

// approve returns what is known when every value that is asked for counts as
// approved as well.
func (p Provenance) approve() Provenance {
	p.approved = true
	return p
}

// Met are the values in one document. The zero Met are none.
type Met struct {
	values map[uint64]Source
	more   bool // than were to be kept
}

// Meet returns the values in a document that the session has met in from, and
// that are new to p. Of a tool's result it takes the content and the structured
// content, of any other document all of it. It keeps at most limit of them.
func (p Provenance) Meet(d Doc, from Source, limit int) Met {
	return p.meet(d, from, limit, false)
}

// MeetUsed is as Meet of the arguments of a call, which vouches for none of them that a
// listing has brought up and nobody else.
func (p Provenance) MeetUsed(d Doc, from Source, limit int) Met { return p.meet(d, from, limit, true) }

func (p Provenance) meet(d Doc, from Source, limit int, used bool) Met {
	n := notes{met: make(map[uint64]Source), from: from, known: p, room: limit, used: used && p.shown != nil}
	if from == FromPrompt { // it comes again with each call
		prompt := promptForm + d.Text()
		if p.find(prompt) != 0 {
			return Met{}
		}
		n.add(prompt)
	}
	n.document(d)
	return Met{n.met, n.room < 0}
}

// Join returns what is known with the values that were met. It is false if they
// were more than could be kept, or limit values are kept already; then not all
// of them are known.
func (p Provenance) Join(m Met, limit int) (Provenance, bool) {
	if p.Len()+len(m.values) > limit {
		return p, false
	}
	return p.with(m.values), !m.more
}

func (p Provenance) with(met map[uint64]Source) Provenance {
	if len(met) == 0 {
		return p
	}
	older := p.newest
	for older != nil && len(older.values) < mergeFactor*len(met) {
		merged := maps.Clone(older.values)
		for k, s := range met {
			merged[k] |= s
		}
		met, older = merged, older.older
	}
	total := len(met)
	if older != nil {
		total += older.total
	}
	p.newest = &layer{met, older, total}
	return p
}

// find returns the source of a value in one of its forms.
func (p Provenance) find(form string) (s Source) {
	if p.newest == nil && p.shown == nil {
		return 0
	}
	return p.at(maphash.String(provenanceSeed, form))
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
func (p Provenance) Of(leaf Doc) Source {
	switch leaf.Kind() {
	case Number:
		return p.find(numberForm(string(leaf.Raw()))) | p.any()
	case String:
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
	Kind    Kind
	Text    string // of a string
	Source  Source
}

// Arguments iterates over the strings, numbers, trues and falses of a call's
// arguments, in their order. The name of a member that the tool's input schema
// does not declare is chosen by the caller like a value: a value below it is as
// trusted as the less trusted of both, and what is empty below it counts as a
// value, too. True and false are never met.
func (p Provenance) Arguments(t *Tool, args Doc) iter.Seq[Argument] {
	return func(yield func(Argument) bool) {
		w := arguments{known: p, tool: t, yield: yield}
		w.walk(args, "", nil)
	}
}

type arguments struct {
	known    Provenance
	tool     *Tool
	declared map[string]bool // names in the input schema; nil until it is needed
	yield    func(Argument) bool
}

// walk goes over a value. Names is what the undeclared names above it come to;
// nil if there are none.
func (w *arguments) walk(d Doc, at string, names *Source) bool {
	empty := true
	switch d.Kind() {
	case Array:
		i := 0
		for e := range d.Elements() {
			if !w.walk(e, at+"/"+strconv.Itoa(i), names) {
				return false
			}
			i++
		}
		empty = i == 0
	case Object:
		for name, v := range d.Members() {
			empty = false
			if !w.walk(v, at+"/"+doc.Escape(name), w.named(name, names)) {
				return false
			}
		}
	case Null:
	default:
		a := Argument{Pointer: at, Kind: d.Kind(), Text: d.Text(), Source: w.known.Of(d)}
		if names != nil {
			a.Source = a.Source.both(*names)
		}
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
		if w.tool != nil {
			declaredNames(w.tool.Definition.Get("inputSchema"), w.declared)
		}
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
func declaredNames(schema Doc, names map[string]bool) {
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
