package provenance

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

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

// Origins returns the places in which a value was met, the newest first, as far as they
// are kept.
func (p Provenance) Origins(a Argument) []Origin {
	return p.originsOf(a.Form)
}

func (p Provenance) originsOf(text string) []Origin {
	if p.places == nil || text == "" {
		return nil
	}
	var all []Origin
	for _, form := range allForms(text) {
		key := hashOf(form)
		for l := p.places; l != nil; l = l.older {
			for _, o := range l.values[key] {
				if !slices.Contains(all, o) && len(all) < originsOfOne {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

// Brought reports whether a listing has brought up a value of a call, or an address in it, and
// nothing that is trusted has.
func Brought(p Provenance, a Argument) bool { return p.brought(a.Source, a.Text) }

// For returns what is known with what holds for the arguments of one call of a server's tool: the
// operator's labels of the tool, what is the principal's own, and the destinations at the server
// that a person has approved.
func For(p Provenance, server string, said ToolLabels, own Identities, destinations []string) Provenance {
	p.use = &use{server, said, own, destinations}
	return p
}

// IsTo reports whether an argument of the call that [For] was given says to whom or where.
func IsTo(p Provenance, a Argument) bool {
	return a.Form != "" && (p.use == nil || p.use.labels.to(a.Pointer))
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

// used completes an argument by what holds for its call.
func (p Provenance) used(a *Argument) {
	u := p.use
	if u == nil {
		return
	}
	if a.Takes = KindOf(u.labels, a.Pointer); a.Takes != "" {
		s := p.find(idOf(u.server, a.Takes, a.Form))
		a.Listed = s != 0
		a.Source |= s & FromTrusted
		if u.labels.DestroysOwn {
			a.Source |= p.find(ownForm + idOf(u.server, a.Takes, a.Form))
		}
	}
	if u.own.has(a.Form) || u.all(a.Form) || p.owns(a.Form) {
		a.Own = true
		a.Source |= FromTrusted
	}
	if u.own.cover(a.Form) {
		a.Own = true
		if !slices.Contains(u.labels.Effects, EffectDestructive) {
			a.Source |= FromTrusted
		}
	}
	if !u.labels.to(a.Pointer) {
		return
	}
	if u.destination(a.Form) {
		a.Source |= FromTrusted
	}
	a.Near = u.labels.fetches() && p.near(a.Form)
}

// owns reports whether the account holder's own record has a value. Most sessions have read none.
func (p Provenance) owns(value string) bool {
	return p.find(ownForm) != 0 && slices.ContainsFunc(ownForms(value), func(form string) bool { return p.find(form) != 0 })
}

// uncommon reports whether a value is one that is hardly met twice by chance: of three
// digits or eight letters. Dates and times are none.
func uncommon(v string) bool {
	n := 0
	for i := range len(v) {
		if v[i] >= '0' && v[i] <= '9' {
			n++
		}
	}
	if _, _, dated := moment(v); dated {
		return false
	}
	return n >= 3 || len(v)-n >= 8
}
