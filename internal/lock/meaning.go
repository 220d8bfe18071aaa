package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	maxLevels  = 32  // of properties in properties
	maxMeaning = 200 // sentences about one definition
)

// words are those in which a schema is spoken of.
type words struct {
	whole                            string // what the schema is of
	may, maynot, must, optional, out string
}

var (
	inputWords = words{"arguments", "can now be passed", "must no longer be passed", "must now be passed", "can now be left out", "can still be passed, and is not checked any more"}
	// A result's promises get weaker as its schema gets wider.
	outputWords = words{"results", "can now be returned", "is no longer returned", "is now always returned", "can now be missing", "can still be returned, and is not described any more"}
)

// meaning says what the changes of a schema mean to who passes arguments or reads
// results. It knows the words of JSON Schema that tools use; what it has no words
// for it names, and shows in the fields.
type meaning struct{ said []string }

func (m *meaning) say(format string, args ...any) {
	if len(m.said) < maxMeaning {
		m.said = append(m.said, Visible(fmt.Sprintf(format, args...)))
	}
}

// schema compares two schemas of what is at the given place.
func (m *meaning) schema(w words, at string, old, now gate.Doc, level int) {
	if level == maxLevels || old.IsZero() && now.IsZero() || !old.IsZero() && !now.IsZero() && old.Digest() == now.Digest() {
		return
	}
	name := at
	if at == "" {
		name = w.whole
	}
	switch {
	case old.IsZero():
		m.say("%s now have a schema", name)
		return
	case now.IsZero():
		m.say("%s no longer have a schema", name)
		return
	}
	m.types(w, name, old, now)
	m.enum(w, name, old, now)
	m.bounds(name, old, now)
	m.properties(w, at, old, now, level)
	m.schema(w, at+"[]", member(old, "items"), member(now, "items"), level+1)
	for _, word := range []string{"const", "pattern", "format", "default", "uniqueItems"} {
		if a, b := old.Get(word), now.Get(word); differ(a, b) {
			m.say("%s: %s was %s, and is now %s", name, word, orNone(a), orNone(b))
		}
	}
	for _, word := range []string{"$ref", "$defs", "definitions", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "prefixItems", "contains", "unevaluatedProperties"} {
		if differ(old.Get(word), now.Get(word)) {
			m.say("%s: %s has changed, which can widen or narrow what is accepted; look at the field", name, word)
		}
	}
}

// member returns a member that is a schema, and one that accepts everything in
// the place of an absent one, so that what comes and goes is spoken of.
func member(schema gate.Doc, name string) gate.Doc {
	if d := schema.Get(name); d.Kind() == doc.Object {
		return d
	}
	return anything
}

var anything = gate.MustDoc("{}")

func differ(a, b gate.Doc) bool {
	if a.IsZero() || b.IsZero() {
		return a.IsZero() != b.IsZero()
	}
	return a.Digest() != b.Digest()
}

func orNone(d gate.Doc) string {
	if d.IsZero() {
		return "absent"
	}
	return clip(string(d.Canonical()))
}

func (m *meaning) types(w words, name string, old, now gate.Doc) {
	a, b := types(old), types(now)
	switch {
	case maps.Equal(a, b):
	case len(a) == 0:
		m.say("%s: only %s %s; before, any type", name, list(b), w.may)
	case len(b) == 0:
		m.say("%s: any type %s; before, only %s", name, w.may, list(a))
	default:
		if more := minus(b, a); len(more) > 0 {
			m.say("%s: %s %s", name, list(more), w.may)
		}
		if less := minus(a, b); len(less) > 0 {
			m.say("%s: %s %s", name, list(less), w.maynot)
		}
	}
}

func types(schema gate.Doc) map[string]bool {
	set := make(map[string]bool)
	switch t := schema.Get("type"); t.Kind() {
	case doc.String:
		set[t.Text()] = true
	case doc.Array:
		for e := range t.Elements() {
			set[e.Text()] = true
		}
	}
	if set["number"] {
		set["integer"] = true // is one
	}
	return set
}

func (m *meaning) enum(w words, name string, old, now gate.Doc) {
	a, b := old.Get("enum"), now.Get("enum")
	switch {
	case !differ(a, b):
	case a.Kind() != doc.Array:
		m.say("%s: only %s %s; before, any value of the type", name, list(values(b)), w.may)
	case b.Kind() != doc.Array:
		m.say("%s: any value of the type %s; before, only %s", name, w.may, list(values(a)))
	default:
		if more := minus(values(b), values(a)); len(more) > 0 {
			m.say("%s: %s %s", name, list(more), w.may)
		}
		if less := minus(values(a), values(b)); len(less) > 0 {
			m.say("%s: %s %s", name, list(less), w.maynot)
		}
	}
}

func values(array gate.Doc) map[string]bool {
	set := make(map[string]bool)
	for e := range array.Elements() {
		set[string(e.Canonical())] = true
	}
	return set
}

func minus(a, b map[string]bool) map[string]bool {
	rest := make(map[string]bool)
	for v := range a {
		if !b[v] {
			rest[v] = true
		}
	}
	return rest
}

// maxListed is how many values are named at once.
const maxListed = 20

func list(set map[string]bool) string {
	all := slices.Sorted(maps.Keys(set))
	if len(all) > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxListed], ", "), len(all)-maxListed)
	}
	return strings.Join(all, ", ")
}

// limits are the words that bound a value; upper says on which side.
var limits = []struct {
	word, of string
	upper    bool
}{
	{"minimum", "value", false}, {"maximum", "value", true}, {"exclusiveMinimum", "value", false}, {"exclusiveMaximum", "value", true},
	{"minLength", "length", false}, {"maxLength", "length", true}, {"minItems", "number of items", false}, {"maxItems", "number of items", true},
	{"minProperties", "number of members", false}, {"maxProperties", "number of members", true},
}

func (m *meaning) bounds(name string, old, now gate.Doc) {
	for _, l := range limits {
		a, b := old.Get(l.word), now.Get(l.word)
		if !differ(a, b) {
			continue
		}
		end := "smallest"
		if l.upper {
			end = "largest"
		}
		m.say("%s: the %s %s (%s) was %s, and is now %s", name, end, l.of, l.word, orUnbounded(a), orUnbounded(b))
	}
}

func orUnbounded(d gate.Doc) string {
	if d.IsZero() {
		return "unbounded"
	}
	return clip(string(d.Canonical()))
}

func (m *meaning) properties(w words, at string, old, now gate.Doc, level int) {
	wasRequired, isRequired := texts(old.Get("required")), texts(now.Get("required"))
	a, b := old.Get("properties"), now.Get("properties")
	closed := now.Get("additionalProperties").Kind() == doc.Bool && !now.Get("additionalProperties").True()
	for _, name := range names(a, b) {
		was, is := a.Get(name), b.Get(name)
		place := join(at, name)
		need := " (optional)"
		if isRequired[name] {
			need = " (required)"
		}
		switch {
		case was.IsZero():
			m.say("%s, %s, %s%s", place, describe(is), w.may, need)
			continue
		case is.IsZero() && closed:
			m.say("%s %s", place, w.maynot)
			continue
		case is.IsZero():
			m.say("%s %s", place, w.out)
			continue
		case !wasRequired[name] && isRequired[name]:
			m.say("%s %s", place, w.must)
		case wasRequired[name] && !isRequired[name]:
			m.say("%s %s", place, w.optional)
		}
		m.schema(w, place, was, is, level+1)
	}
	for _, name := range slices.Sorted(maps.Keys(minus(isRequired, wasRequired))) {
		if b.Get(name).IsZero() {
			m.say("%s, which is not described, %s", join(at, name), w.must)
		}
	}
	m.others(w, at, old.Get("additionalProperties"), now.Get("additionalProperties"))
}

// others speaks of members that are not described.
func (m *meaning) others(w words, at string, old, now gate.Doc) {
	what := "members that are not described"
	if at != "" {
		what += " of " + at
	}
	open := func(d gate.Doc) bool { return d.IsZero() || d.Kind() == doc.Bool && d.True() }
	shut := func(d gate.Doc) bool { return d.Kind() == doc.Bool && !d.True() }
	switch {
	case !differ(old, now) || open(old) && open(now):
	case shut(old):
		m.say("%s %s", what, w.may)
	case shut(now):
		m.say("%s %s", what, w.maynot)
	default:
		m.say("%s: additionalProperties has changed; look at the field", what)
	}
}

func texts(array gate.Doc) map[string]bool {
	set := make(map[string]bool)
	for e := range array.Elements() {
		set[e.Text()] = true
	}
	return set
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// describe says in a few words what a schema accepts.
func describe(schema gate.Doc) string {
	if t := types(schema); len(t) > 0 {
		return list(t)
	}
	return "of any type"
}
