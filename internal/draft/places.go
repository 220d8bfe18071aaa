package draft

import (
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/internal/policy"
)

// maxDrafted bounds how many results are looked at.
const maxDrafted = 100

// idKind names the kind of the ids that an argument takes, or a place holds: by its own
// name, as of person_id, or else by what its tool is about. It is "" if neither says so.
func idKind(own, tool []string) string {
	if !anyOf(own, []string{"id", "ids"}) {
		return ""
	}
	if own = slices.DeleteFunc(slices.Clone(own), func(w string) bool { return w == "id" || w == "ids" }); len(own) > 0 {
		return strings.TrimSuffix(own[len(own)-1], "s")
	}
	for _, w := range slices.Backward(tool) {
		if w = strings.TrimSuffix(w, "s"); slices.Contains(kindWords, w) && !slices.Contains(readWords, w) {
			return w
		}
	}
	return ""
}

// draftPlaces guesses the places of results: those for which the words of their names
// speak, and where each result has what they are said to hold. Where no result is known,
// the output schema says what there will be.
func draftPlaces(l *policy.Label, words []string, schema gate.Doc, results []gate.Doc) {
	seen := make(map[string][]string) // texts, by place
	if len(results) == 0 {
		eachDeclared(schema, "", 0, seen)
	}
	for _, r := range results[:min(len(results), maxDrafted)] {
		eachPlace(r, "", seen)
	}
	for _, place := range slices.Sorted(maps.Keys(seen)) {
		name := nameWords(place[strings.LastIndexByte(strings.TrimSuffix(place, "/*"), '/')+1:])
		all := func(is func(string) bool) bool {
			return !slices.ContainsFunc(seen[place], func(v string) bool { return !is(v) })
		}
		switch kind := idKind(name, words); {
		case anyOf(name, partyWords) && all(isAddress):
			l.Identity = append(l.Identity, gate.Place(place))
		case kind != "" && all(func(v string) bool { return len(v) <= 64 && !strings.Contains(v, " ") }):
			if l.IDs == nil {
				l.IDs = make(map[gate.Place]string)
			}
			l.IDs[gate.Place(place)] = kind
		case anyOf(name, namingWords) && all(func(v string) bool { return len(v) <= 128 }):
			l.Names = append(l.Names, gate.Place(place))
		}
	}
	if l.Identity == nil {
		l.Names = nil
	}
}

// eachPlace collects what stands at the places of a document, elements of lists together.
// Members whose names are addresses are those of a list of addresses.
func eachPlace(d gate.Doc, at string, seen map[string][]string) {
	switch d.Kind() {
	case gate.Array:
		for e := range d.Elements() {
			eachPlace(e, at+"/*", seen)
		}
	case gate.Object:
		for name, v := range d.Members() {
			if isAddress(name) {
				seen[at] = append(seen[at], name)
				continue
			}
			eachPlace(v, at+"/"+pointer.Escape(name), seen)
		}
	case gate.String:
		seen[at] = append(seen[at], d.Text())
	case gate.Number:
		seen[at] = append(seen[at], string(d.Raw()))
	}
}

// maxDeclared bounds how deep a schema is looked into.
const maxDeclared = 16

// eachDeclared collects the places that a schema declares, with an example of what is to stand
// there: an address where it says so, and else something that could be an id or a name.
func eachDeclared(schema gate.Doc, at string, depth int, seen map[string][]string) {
	if depth > maxDeclared {
		return
	}
	if schema.Get("items").Kind() == gate.Object {
		eachDeclared(schema.Get("items"), at+"/*", depth+1, seen)
	}
	for name, v := range schema.Get("properties").Members() {
		eachDeclared(v, at+"/"+pointer.Escape(name), depth+1, seen)
	}
	switch kind := schema.Get("type").Text(); {
	case kind == "string" && schema.Get("format").Text() == "email":
		seen[at] = append(seen[at], "a@b.example")
	case kind == "string" || kind == "integer":
		seen[at] = append(seen[at], "1")
	}
}

// isAddress reports whether a text is one e-mail address. Other addresses are not told
// from names.
func isAddress(v string) bool {
	name, host, ok := strings.Cut(v, "@")
	return ok && name != "" && strings.Contains(host, ".") && !strings.ContainsAny(v, " \t\n,;<>/\\")
}
