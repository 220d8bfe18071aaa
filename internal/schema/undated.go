package schema

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Undated returns a schema of draft-07 without its $schema if it means the same under 2020-12, as
// nearly all do: there are clients that know no other dialect, and refuse each call of the tool.
func Undated(raw gate.Doc) gate.Doc {
	dialect := strings.TrimSuffix(raw.Get("$schema").Text(), "#")
	if _, draft, _ := strings.Cut(dialect, "://"); draft != "json-schema.org/draft-07/schema" || differs(raw) {
		return raw
	}
	return without(raw, "$schema")
}

// differs reports whether a schema of draft-07 has what 2020-12 reads in another way. It also looks
// at what is no schema, such as the values of enum: then it says yes too often.
func differs(d gate.Doc) bool {
	reference := d.Kind() == doc.Object && d.Get("$ref").Kind() == doc.String
	for name, v := range d.Members() {
		switch {
		case name == "items" && v.Kind() == doc.Array,
			name == "additionalItems", name == "dependencies", name == "$id", name == "$recursiveRef", name == "$dynamicRef",
			name == "unevaluatedProperties", name == "unevaluatedItems", name == "prefixItems", name == "dependentRequired", name == "dependentSchemas",
			name == "minContains", name == "maxContains", name == "$anchor", name == "$dynamicAnchor",
			reference && name != "$ref" && name != "$schema" && name != "definitions" && name != "description" && name != "title":
			return true
		}
		if differs(v) {
			return true
		}
	}
	for v := range d.Elements() {
		if differs(v) {
			return true
		}
	}
	return false
}

// without returns an object without one of its members.
func without(d gate.Doc, name string) gate.Doc {
	b := []byte{'{'}
	for n, v := range d.Members() {
		if n == name {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(doc.AppendString(b, n), ':'), v.Raw()...)
	}
	return gate.MustDoc(string(append(b, '}')))
}
