package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
)

// ForModels reshapes a normalized schema of arguments into what all model providers take: without
// allOf, and at the top without alternatives, not, enum and conditions, because some providers refuse a
// whole list of tools for one of these. The result allows more than the schema does: it has the members
// of all alternatives at the top, and requires those that every alternative requires.
func ForModels(d gate.Doc) gate.Doc {
	var top map[string]any
	in := json.NewDecoder(bytes.NewReader(d.Raw()))
	in.UseNumber()
	if err := in.Decode(&top); err != nil {
		return gate.MustDoc(closed)
	}
	before := maps.Clone(top)
	top = withoutAllOf(top).(map[string]any)
	for _, name := range []string{"anyOf", "oneOf"} {
		alternatives(top, name)
	}
	for _, name := range []string{"not", "enum", "const", "if", "then", "else", "dependentSchemas", "dependencies"} {
		delete(top, name)
	}
	if top["type"] = "object"; reflect.DeepEqual(before, top) {
		return d // in its own order
	}
	if top["properties"] == nil {
		top["properties"] = map[string]any{}
	}
	raw, err := json.Marshal(top)
	if err != nil {
		return gate.MustDoc(closed)
	}
	out, err := gate.ParseDoc(raw)
	if err != nil {
		return gate.MustDoc(closed)
	}
	return out
}

// withoutAllOf returns a part of a schema in which what has to hold together is one schema. Of
// two words for one thing the first is kept.
func withoutAllOf(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = withoutAllOf(one)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			out[name] = withoutAllOf(one)
		}
		all, ok := out["allOf"].([]any)
		if !ok {
			return out // also where properties have one of that name
		}
		delete(out, "allOf")
		for _, one := range all {
			part, _ := one.(map[string]any)
			addProperties(out, part)
			if need := union(names(out["required"]), names(part["required"])); len(need) > 0 {
				out["required"] = need
			}
			for name, of := range part {
				if _, known := out[name]; !known {
					out[name] = of
				}
			}
		}
		return out
	}
	return v
}

// alternatives takes the members of all alternatives into a schema for objects.
func alternatives(top map[string]any, name string) {
	all, ok := top[name].([]any)
	if !ok {
		return
	}
	delete(top, name)
	var each []any // that every alternative requires
	for i, one := range all {
		part, _ := one.(map[string]any)
		addProperties(top, part)
		need := names(part["required"])
		if i == 0 {
			each = need
		}
		each = slices.DeleteFunc(slices.Clone(each), func(n any) bool { return !slices.Contains(need, n) })
	}
	known, _ := top["properties"].(map[string]any)
	need := slices.DeleteFunc(union(names(top["required"]), each), func(n any) bool {
		name, ok := n.(string)
		return !ok || known[name] == nil
	})
	if delete(top, "required"); len(need) > 0 {
		top["required"] = need
	}
}

// addProperties adds those of a part. One that is another there may be either.
func addProperties(to, part map[string]any) {
	from, _ := part["properties"].(map[string]any)
	known, _ := to["properties"].(map[string]any)
	if len(from) == 0 {
		return
	}
	if known == nil {
		known = make(map[string]any)
	}
	for name, of := range from {
		switch was := known[name]; {
		case was == nil:
			known[name] = of
		case !reflect.DeepEqual(was, of):
			known[name] = map[string]any{"anyOf": []any{was, of}}
		}
	}
	to["properties"] = known
}

func names(v any) []any {
	list, _ := v.([]any)
	return list
}

func union(a, b []any) []any {
	all := slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
