package engine

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// maxOffered bounds the values and prefixes that a narrowed schema lists.
const maxOffered = 100

// values are what one way to pass leaves of an argument: some values, or
// what begins with one of some prefixes.
type values struct {
	constants []ast.Value
	prefixes  []string
}

// narrowed returns the definition with the arguments narrowed that every one of the
// bodies narrows; absent if there is none.
func narrowed(definition gate.Doc, bodies []ast.Body) gate.Doc {
	if len(bodies) == 0 || len(bodies) > maxOffered {
		return gate.Doc{}
	}
	common := restrictions(bodies[0])
	for _, body := range bodies[1:] {
		other := restrictions(body)
		for name, v := range common {
			w, ok := other[name]
			if !ok || (v.prefixes == nil) != (w.prefixes == nil) {
				delete(common, name)
				continue
			}
			common[name] = values{append(v.constants, w.constants...), append(v.prefixes, w.prefixes...)}
		}
	}
	schema := definition.Get("inputSchema")
	properties := schema.Get("properties")
	before := properties
	for name, v := range common {
		if prop, ok := v.narrow(properties.Get(name)); ok {
			properties = properties.With(name, prop.Raw())
		}
	}
	if properties == before {
		return gate.Doc{}
	}
	return definition.With("inputSchema", schema.With("properties", properties.Raw()).Raw())
}

// restrictions returns what a body demands of arguments, by name. What it does not
// understand demands nothing.
func restrictions(body ast.Body) map[string]values {
	all := make(map[string]values)
	for _, expr := range body {
		terms, ok := expr.Terms.([]*ast.Term)
		if !ok || expr.Negated || len(expr.With) > 0 || len(terms) != 3 {
			continue
		}
		if name, v, ok := restriction(terms[0].String(), terms[1], terms[2]); ok {
			if _, twice := all[name]; !twice { // both hold; one of them is true enough
				all[name] = v
			}
		}
	}
	return all
}

func restriction(op string, a, b *ast.Term) (name string, v values, ok bool) {
	switch op {
	case ast.Equality.Name, ast.Equal.Name:
		if name, ok = argument(a); !ok {
			name, ok = argument(b)
			b = a
		}
		return name, values{constants: []ast.Value{b.Value}}, ok && simple(b.Value)
	case ast.Member.Name:
		name, ok = argument(a)
		v.constants, _ = members(b.Value)
		return name, v, ok && len(v.constants) > 0 && !slices.ContainsFunc(v.constants, func(c ast.Value) bool { return !simple(c) })
	case ast.StartsWith.Name:
		name, ok = argument(a)
		prefix, text := b.Value.(ast.String)
		return name, values{prefixes: []string{string(prefix)}}, ok && text
	}
	return "", values{}, false
}

// argument returns the name of an argument that a term stands for.
func argument(t *ast.Term) (string, bool) {
	ref, ok := t.Value.(ast.Ref)
	if !ok || len(ref) != 3 || !ref.HasPrefix(input.ArgumentsRef) {
		return "", false
	}
	name, ok := ref[2].Value.(ast.String)
	return string(name), ok
}

// simple reports whether a value is one that an enum can list.
func simple(v ast.Value) bool {
	switch v.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null:
		return true
	}
	return false
}

func members(v ast.Value) (all []ast.Value, ok bool) {
	add := func(t *ast.Term) { all = append(all, t.Value) }
	switch v := v.(type) {
	case ast.Set:
		v.Foreach(add)
	case *ast.Array:
		v.Foreach(add)
	default:
		return nil, false
	}
	return all, true
}

// narrow narrows the schema of an argument. It leaves alone what is narrow in a
// way of its own, but for a list of values: it keeps those that can pass.
func (v values) narrow(schema gate.Doc) (gate.Doc, bool) {
	kind := schema.Get("type")
	if schema.Kind() != doc.Object || !schema.Get("$ref").IsZero() || !schema.Get("const").IsZero() {
		return gate.Doc{}, false
	}
	if enum := schema.Get("enum"); !enum.IsZero() {
		return v.among(schema, enum)
	}
	if v.prefixes != nil {
		if !schema.Get("pattern").IsZero() || !kind.IsZero() && kind.Text() != "string" {
			return gate.Doc{}, false
		}
		return schema.With("pattern", encoded(pattern(v.prefixes))), true
	}
	list := distinct(v.constants)
	if len(list) > maxOffered {
		return gate.Doc{}, false
	}
	if len(list) == 1 {
		return schema.With("const", list[0]), true
	}
	return schema.With("enum", slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))), true
}

// among leaves of the values that a schema lists those that can pass.
func (v values) among(schema, enum gate.Doc) (gate.Doc, bool) {
	allowed := map[string]bool{}
	for _, c := range distinct(v.constants) {
		if d, err := gate.ParseDoc(c); err == nil {
			allowed[string(d.Canonical())] = true
		}
	}
	var left [][]byte
	total := 0
	for one := range enum.Elements() {
		total++
		begins := func(prefix string) bool { return strings.HasPrefix(one.Text(), prefix) }
		if allowed[string(one.Canonical())] || one.Kind() == doc.String && slices.ContainsFunc(v.prefixes, begins) {
			left = append(left, one.Raw())
		}
	}
	if len(left) == 0 || len(left) == total {
		return gate.Doc{}, false
	}
	return schema.With("enum", slices.Concat([]byte("["), bytes.Join(left, []byte(",")), []byte("]"))), true
}

// pattern returns the expression for what begins with one of the prefixes. JSON
// Schema's expressions and Go's escape alike.
func pattern(prefixes []string) string {
	slices.Sort(prefixes)
	var alternatives []string
	for _, p := range slices.Compact(prefixes) {
		alternatives = append(alternatives, regexp.QuoteMeta(p))
	}
	if len(alternatives) == 1 {
		return "^" + alternatives[0]
	}
	return "^(?:" + strings.Join(alternatives, "|") + ")"
}

// distinct returns constants as JSON, sorted and each once.
func distinct(constants []ast.Value) [][]byte {
	var all []string
	for _, c := range constants {
		if s, ok := c.(ast.String); ok {
			all = append(all, string(encoded(string(s))))
		} else {
			all = append(all, c.String())
		}
	}
	slices.Sort(all)
	var list [][]byte
	for _, s := range slices.Compact(all) {
		list = append(list, []byte(s))
	}
	return list
}

func encoded(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // of a string
	}
	return b
}
