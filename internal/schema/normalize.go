package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Limits of what replacing references may do. A schema can double with each of
// its definitions.
const (
	maxTargets  = 1000     // definitions referred to
	maxAdded    = 64 << 10 // bytes; the reference that goes beyond is the last one
	maxResult   = 1 << 20  // bytes beyond the schema's own
	maxNesting  = 100      // schemas within each other
	maxReplaced = 32       // references within each other
)

// closed replaces a schema that says nothing usable.
const closed = `{"type":"object","properties":{}}`

// anything is the type of a schema that cannot be written out and has no type.
const anything = `["object","array","string","number","boolean","null"]`

// role says what Normalize does with a keyword's value.
type role uint8

const (
	kept      role = iota // passed on as it is
	stripped              // left out
	typeNames             // names of types
	values                // an array
	child                 // a schema for a part of the value
	children              // an object of such
	tuple                 // such a schema, or an array, whose first schema is taken
	aside                 // a schema that may rely on what is around it
	asides                // an array of such
	asideMap              // an object of such, or of other values
)

var roles = map[string]role{
	// Keywords that no provider resolves, and keywords that do not constrain.
	"$schema": stripped, "$id": stripped, "$ref": stripped, "$defs": stripped, "definitions": stripped,
	"$anchor": stripped, "$dynamicRef": stripped, "$dynamicAnchor": stripped,
	"$recursiveRef": stripped, "$recursiveAnchor": stripped, "$vocabulary": stripped,
	"$comment": stripped, "deprecated": stripped, "readOnly": stripped, "writeOnly": stripped,
	"default": stripped, "examples": stripped,
	"contentEncoding": stripped, "contentMediaType": stripped, "contentSchema": stripped,
	// Keywords about the elements after a tuple mean nothing once the tuple has become one schema.
	"additionalItems": stripped, "unevaluatedItems": stripped,

	"type": typeNames, "enum": values,
	"properties": children, "items": tuple, "prefixItems": tuple, "additionalProperties": child,
	"allOf": asides, "anyOf": asides, "oneOf": asides,
	"not": aside, "if": aside, "then": aside, "else": aside, "contains": aside, "propertyNames": aside,
	"unevaluatedProperties": aside,
	"patternProperties":     asideMap, "dependentSchemas": asideMap, "dependencies": asideMap,
}

var typeNamed = map[string]bool{
	"object": true, "array": true, "string": true, "number": true, "integer": true, "boolean": true, "null": true,
}

// Normalize reshapes a tool's schema into what clients and model providers with
// little support for JSON Schema take: references are replaced by what they
// refer to, definitions and annotations that do not constrain are dropped,
// objects always have properties, required names only these, and a tuple becomes
// an array of its first item. A schema without a usable type becomes the closed
// object {"type":"object","properties":{}}, unless it has no type at all but
// enum, const, anyOf, oneOf or allOf. So does what is no schema.
//
// A reference by JSON Pointer that leads back into itself becomes a schema of the
// same type without constraints, and so do those that come after references have
// added 64 KiB. One that leads to another document, or nowhere, is dropped.
//
// Members keep their order. The result is an object, and normalizing it again
// gives it again. It shows what to call a tool with, no more: documents are
// checked against the schema as it was declared.
func Normalize(raw gate.Doc) gate.Doc {
	n := normalizer{root: raw, limit: len(raw.Raw()), open: []string{""}, targets: make(map[string]gate.Doc)}
	out := n.schema(raw, child)
	if len(out) > n.limit+maxResult {
		return gate.MustDoc(closed)
	}
	d, err := gate.ParseDoc(out)
	if err != nil { // too deep, now that references are replaced
		return gate.MustDoc(closed)
	}
	return d
}

type normalizer struct {
	root    gate.Doc
	limit   int      // bytes of the schema
	written int      // bytes
	nesting int      // schemas
	open    []string // pointers of what is being written
	targets map[string]gate.Doc
}

// A member is a keyword with its value. more are schemas to add to an allOf.
type member struct {
	name  string
	value gate.Doc
	more  []gate.Doc
}

// A field is a keyword, and what happens to its value.
type field struct {
	name string
	raw  []byte
}

// schema returns what becomes of d in the role of child or aside.
func (n *normalizer) schema(d gate.Doc, as role) []byte {
	if d.Kind() != doc.Object || n.nesting > maxNesting {
		return noSchema(d, as)
	}
	open := len(n.open)
	members := n.resolve(d, as)
	n.nesting++
	var fields []field
	for _, m := range members {
		if m.name == "prefixItems" {
			m.name = "items"
		}
		if m.name == "items" {
			if find(fields, "items") >= 0 {
				continue
			}
			m.value = items(members)
		}
		if raw := n.value(m); raw != nil {
			n.written += len(m.name) + len(`"":,`)
			fields = append(fields, field{m.name, raw})
		}
	}
	n.nesting--
	n.open = n.open[:open]
	n.written += len(closed) // what it may become, or an object's properties and braces
	if as == child && !speaks(members, fields) {
		return []byte(closed)
	}
	return encode(completeObject(members, fields))
}

// noSchema returns what becomes of a boolean, or of what is no schema.
func noSchema(d gate.Doc, as role) []byte {
	switch {
	case as == child:
		return []byte(closed)
	case d.Kind() == doc.Bool && !d.True():
		return []byte(`{"not":{}}`)
	default:
		return []byte("{}")
	}
}

// speaks reports whether a schema says what it allows.
func speaks(members []member, fields []field) bool {
	if find(fields, "type") >= 0 {
		return true
	}
	typed := slices.ContainsFunc(members, func(m member) bool { return m.name == "type" })
	return !typed && slices.ContainsFunc(fields, func(f field) bool {
		switch f.name {
		case "enum", "const", "anyOf", "oneOf", "allOf":
			return true
		}
		return false
	})
}

// value returns what becomes of the value of a keyword, or nil if the keyword
// goes.
func (n *normalizer) value(m member) []byte {
	d := m.value
	switch roles[m.name] {
	case stripped:
		return nil
	case typeNames:
		return usableTypes(d)
	case values:
		if d.Kind() != doc.Array {
			return nil
		}
	case child:
		if d.Kind() == doc.Object {
			return n.schema(d, child)
		}
		if d.Kind() != doc.Bool {
			return nil
		}
	case tuple:
		if !d.IsZero() {
			return n.schema(d, child)
		}
		return nil
	case aside:
		if d.Kind() == doc.Object || d.Kind() == doc.Bool {
			return n.schema(d, aside)
		}
		return nil
	case asides:
		return n.list(m)
	case children:
		return n.object(d, child)
	case asideMap:
		return n.object(d, aside)
	}
	n.written += len(d.Raw())
	return d.Raw()
}

// list returns what becomes of an array of schemas, and of more at its end.
func (n *normalizer) list(m member) []byte {
	if m.value.Kind() != doc.Array && m.more == nil {
		return nil
	}
	out := []byte{'['}
	for d := range m.value.Elements() {
		out = append(append(out, n.schema(d, aside)...), ',')
	}
	for _, d := range m.more {
		out = append(append(out, n.schema(d, aside)...), ',')
	}
	return append(bytes.TrimSuffix(out, []byte{','}), ']')
}

// object returns what becomes of an object of schemas. The arrays of names in
// dependencies stay.
func (n *normalizer) object(d gate.Doc, as role) []byte {
	if d.Kind() != doc.Object {
		return nil
	}
	var fields []field
	for name, v := range d.Members() {
		raw := v.Raw()
		if as == child || v.Kind() != doc.Array {
			raw = n.schema(v, as)
		}
		n.written += len(name) + len(`"":,`)
		fields = append(fields, field{name, raw})
	}
	return encode(fields)
}

// items returns the schema for the items of an array: the first of a tuple.
func items(members []member) gate.Doc {
	for _, name := range []string{"prefixItems", "items"} {
		d := get(members, name)
		switch d.Kind() {
		case doc.Array:
			for first := range d.Elements() {
				return first
			}
		case doc.Object, doc.Bool:
			return d
		}
	}
	return gate.Doc{}
}

// usableTypes returns a value for type, without names that are none, or nil.
func usableTypes(d gate.Doc) []byte {
	if typeNamed[d.Text()] {
		return d.Raw()
	}
	var names []string
	for name := range d.Elements() {
		if typeNamed[name.Text()] {
			names = append(names, name.Text())
		}
	}
	if names == nil {
		return nil
	}
	return []byte(`["` + strings.Join(names, `","`) + `"]`)
}

// completeObject sees to properties and required of a schema for objects.
func completeObject(members []member, fields []field) []field {
	i := find(fields, "type")
	if i < 0 || !bytes.Contains(fields[i].raw, []byte(`"object"`)) {
		return fields
	}
	declared := make(map[string]bool)
	for name := range get(members, "properties").Members() {
		declared[name] = true
	}
	if i := find(fields, "required"); i >= 0 {
		var names []byte
		for d := range get(members, "required").Elements() {
			if d.Kind() == doc.String && declared[d.Text()] {
				names = append(append(names, ','), d.Raw()...)
			}
		}
		if names == nil {
			fields = slices.Delete(fields, i, i+1)
		} else {
			names[0] = '['
			fields[i].raw = append(names, ']')
		}
	}
	if find(fields, "properties") < 0 {
		fields = append(fields, field{"properties", []byte("{}")})
	}
	return fields
}

// resolve returns the members of d with a reference replaced by the members of
// what it refers to, and marks that as open.
func (n *normalizer) resolve(d gate.Doc, as role) []member {
	var members []member
	for name, v := range d.Members() {
		members = append(members, member{name: name, value: v})
	}
	for {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == "$ref" })
		if i < 0 {
			return members
		}
		ref := members[i].value.Text()
		members = slices.Delete(members, i, i+1)
		if ref != "#" && !strings.HasPrefix(ref, "#/") {
			return members
		}
		pointer := fragment(ref)
		target, known := n.target(pointer)
		switch {
		case known && target.Kind() != doc.Object:
			return members
		case !known || slices.Contains(n.open, pointer) || len(n.open) > maxReplaced || n.written > n.limit+maxAdded:
			return withType(members, target, as)
		}
		n.open = append(n.open, pointer)
		members = merge(members, target)
	}
}

// target returns what a pointer leads to, and false if that has been asked for
// too many pointers: finding it takes time in proportion to the document.
func (n *normalizer) target(pointer string) (gate.Doc, bool) {
	d, ok := n.targets[pointer]
	if !ok && len(n.targets) < maxTargets {
		d, ok = n.root.At(pointer), true
		n.targets[pointer] = d
	}
	return d, ok
}

// withType adds the type of a target that is not written out.
func withType(members []member, target gate.Doc, as role) []member {
	if !get(members, "type").IsZero() {
		return members
	}
	t := target.Get("type")
	if usableTypes(t) == nil {
		if as != child {
			return members
		}
		t = gate.MustDoc(anything)
	}
	return append(members, member{name: "type", value: t})
}

// merge adds the members of target. Where both sides constrain the same thing
// in different ways, target goes into allOf instead.
func merge(members []member, target gate.Doc) []member {
	old := make(map[string]gate.Doc, len(members))
	for _, m := range members {
		old[m.name] = m.value
	}
	merged := slices.Clone(members)
	for name, v := range target.Members() {
		was, both := old[name]
		switch {
		case roles[name] == stripped && name != "$ref", both && (name == "title" || name == "description"):
		case !both:
			merged = append(merged, member{name: name, value: v})
		case was.Digest() != v.Digest():
			return addToAllOf(members, target)
		}
	}
	return merged
}

func addToAllOf(members []member, target gate.Doc) []member {
	i := slices.IndexFunc(members, func(m member) bool { return m.name == "allOf" })
	if i < 0 {
		return append(members, member{name: "allOf", more: []gate.Doc{target}})
	}
	members[i].more = append(members[i].more, target)
	return members
}

func get(members []member, name string) gate.Doc {
	for _, m := range members {
		if m.name == name {
			return m.value
		}
	}
	return gate.Doc{}
}

func find(fields []field, name string) int {
	return slices.IndexFunc(fields, func(f field) bool { return f.name == name })
}

func encode(fields []field) []byte {
	var b bytes.Buffer
	names := json.NewEncoder(&b)
	names.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		_ = names.Encode(f.name) // a string always has an encoding
		b.Truncate(b.Len() - len("\n"))
		b.WriteByte(':')
		b.Write(f.raw)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Repair returns a document that can serve as the schema of a tool's arguments, which MCP wants to be
// an object with the type "object" (revision 2025-11-25, server/tools, "Data Types"). Added is what
// Repair had to add to raw for that; "" if nothing. A document that it cannot repair is returned as it
// is.
func Repair(raw gate.Doc) (repaired gate.Doc, added string) {
	const object = `"object"`
	switch {
	case raw.IsZero(), raw.Kind() == doc.Null, string(raw.Raw()) == "[]": // as PHP writes an empty object
		return gate.MustDoc(`{"type":` + object + `}`), "an input schema"
	case raw.Kind() == doc.Object && raw.Get("type").IsZero():
		return raw.With("type", []byte(object)), `the type "object" of the input schema`
	default:
		return raw, ""
	}
}
