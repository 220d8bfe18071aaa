package schema

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// simple is a schema with only the keywords that nearly all tools use, read from its text. It is
// checked on the parsed document, before the validator, and can only accept: a document that it does
// not accept goes to the validator, which also words the violations. Everything that it accepts, the
// validator accepts.
type simple struct {
	types      []string
	properties []property
	required   []string
	closed     bool    // no members but those
	further    *simple // of the other members; nil: anything
	each       *simple // of a list; nil: anything
	any        []*simple
	texts      []string // of an enum; nil: any
	limits     []limit
	weight     int // of the root: units that the meter takes of one value at most
}

type property struct {
	name string
	is   *simple
}

// A limit bounds a count: of a list's items, of a text's characters, or the number itself.
type limit struct {
	of  doc.Kind
	n   int64
	max bool
}

// Limits of what is judged simply.
const (
	maxSimple      = 500     // schemas within a schema
	maxSimpleWords = 1000    // names that are required, and texts of enums
	maxSimpleBytes = 1 << 9  // of one of them
	maxLookedUp    = 1 << 12 // names of an object times those of its schema
	maxPlainDigits = 15      // of a number
)

// The largest part of the meter's units that one value takes, by the keywords of a schema: there are no
// references, so no schema meets a value twice.
const (
	unitsOfSchema = 2
	unitsOfLimit  = 16
)

// anyBytes is what the meter takes at most for each byte of a value that meets several
// schemas, in units of one value: a number is written out for it, 1e999 too.
const anyBytes = 8

// simpleReader reads a simple schema from a schema that has compiled.
type simpleReader struct {
	schemas, words, limits int
	choice                 int // anyOf around what is read
}

// newSimple returns a schema as a simple one, or nil if it is none.
func newSimple(raw gate.Doc) *simple {
	r := new(simpleReader)
	s := r.schema(raw, true)
	if s != nil {
		s.weight = unitsOfSchema*r.schemas + r.words + unitsOfLimit*r.limits
	}
	return s
}

func (r *simpleReader) schema(d gate.Doc, root bool) *simple {
	if r.schemas++; d.Kind() != doc.Object || r.schemas > maxSimple {
		return nil
	}
	s := new(simple)
	for name, value := range d.Members() {
		if !(root && name == "$schema") && !r.keyword(s, name, value) {
			return nil
		}
	}
	numbers := func(l limit) bool { return l.of == doc.Number }
	if slices.ContainsFunc(s.limits, numbers) && (r.choice > 0 || len(s.types) != 1 || s.types[0] != "integer" && s.types[0] != "number") {
		return nil // the meter weighs what is no number, too
	}
	return s
}

// keyword reads a keyword, and reports whether a simple schema has it.
func (r *simpleReader) keyword(s *simple, name string, value gate.Doc) bool {
	switch name {
	case "type":
		return r.types(s, value)
	case "properties":
		return r.properties(s, value)
	case "required":
		return r.required(s, value)
	case "additionalProperties":
		return r.additional(s, value)
	case "items":
		return r.items(s, value)
	case "anyOf":
		return r.anyOf(s, value)
	case "enum":
		return r.enum(s, value)
	case "minItems", "maxItems":
		return r.limit(s, doc.Array, name, value)
	case "minLength", "maxLength":
		return r.limit(s, doc.String, name, value)
	case "minimum", "maximum":
		return r.limit(s, doc.Number, name, value)
	case "title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly",
		"format": // not checked anywhere
		return true
	}
	return false
}

func (r *simpleReader) types(s *simple, d gate.Doc) bool {
	s.types = []string{d.Text()}
	if d.Kind() == doc.Array {
		s.types = r.texts(d)
	}
	return s.types != nil
}

// texts reads a list of texts, nil if it is none or too long.
func (r *simpleReader) texts(d gate.Doc) (all []string) {
	for v := range d.Elements() {
		if r.words++; v.Kind() != doc.String || r.words > maxSimpleWords || len(v.Raw()) > maxSimpleBytes {
			return nil
		}
		all = append(all, v.Text())
	}
	return all
}

func (r *simpleReader) properties(s *simple, d gate.Doc) bool {
	for name, value := range d.Members() {
		is := r.schema(value, false)
		if is == nil {
			return false
		}
		s.properties = append(s.properties, property{name, is})
	}
	return true
}

func (r *simpleReader) required(s *simple, d gate.Doc) bool {
	s.required = r.texts(d)
	return s.required != nil || doc.Len(d) == 0
}

func (r *simpleReader) additional(s *simple, d gate.Doc) bool {
	if d.Kind() == doc.Bool {
		s.closed = !d.True()
		return true
	}
	s.further = r.schema(d, false)
	return s.further != nil
}

func (r *simpleReader) items(s *simple, d gate.Doc) bool {
	s.each = r.schema(d, false)
	return s.each != nil
}

func (r *simpleReader) anyOf(s *simple, d gate.Doc) bool {
	r.choice++
	defer func() { r.choice-- }()
	for v := range d.Elements() {
		one := r.schema(v, false)
		if one == nil {
			return false
		}
		s.any = append(s.any, one)
	}
	return s.any != nil
}

func (r *simpleReader) enum(s *simple, d gate.Doc) bool {
	s.texts = r.texts(d)
	return s.texts != nil
}

func (r *simpleReader) limit(s *simple, of doc.Kind, name string, d gate.Doc) bool {
	n, ok := plainInteger(d)
	r.limits++
	s.limits = append(s.limits, limit{of, n, strings.HasPrefix(name, "max")})
	return ok
}

// plainInteger reads a number of a few digits and nothing else.
func plainInteger(d gate.Doc) (int64, bool) {
	if d.Kind() != doc.Number || len(d.Raw()) > maxPlainDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(string(d.Raw()), 10, 64)
	return n, err == nil
}

// judge holds a document against a simple schema as long as the meter would.
type judge struct{ left int } // values that may still meet the schemas

// accepts reports whether a document is as the schema says.
func (s *simple) accepts(d gate.Doc) bool {
	j := judge{left: maxUnits / s.weight}
	return j.value(s, d)
}

func (j *judge) value(s *simple, d gate.Doc) bool {
	j.left -= 1 + len(d.Raw())/unitBytes
	if s.any != nil { // the meter goes through all of them, with all that is below
		j.left -= anyBytes * len(d.Raw())
	}
	if j.left < 0 {
		return false
	}
	if s.types != nil && !slices.ContainsFunc(s.types, func(t string) bool { return isPlainly(d, t) }) {
		return false
	}
	if s.texts != nil && (d.Kind() != doc.String || !slices.Contains(s.texts, d.Text())) {
		return false
	}
	for _, l := range s.limits {
		if !l.allows(d) {
			return false
		}
	}
	if s.any != nil && !slices.ContainsFunc(s.any, func(one *simple) bool { return j.value(one, d) }) {
		return false
	}
	switch d.Kind() {
	case doc.Object:
		return j.object(s, d)
	case doc.Array:
		return s.each == nil || j.items(s.each, d)
	}
	return true
}

// isPlainly reports whether a value has a type of JSON Schema, of numbers whether it is
// plain to see.
func isPlainly(d gate.Doc, name string) bool {
	if d.Kind() != doc.Number {
		return hasType(d, name)
	}
	switch name {
	case "integer":
		_, ok := plainInteger(d)
		return ok
	case "number":
		return len(d.Raw()) <= maxPlainDigits && !strings.ContainsAny(d.String(), "eE")
	}
	return false
}

func (l limit) allows(d gate.Doc) bool {
	if l.of != d.Kind() {
		return true
	}
	n, ok := int64(0), true
	switch l.of {
	case doc.Array:
		n = int64(doc.Len(d))
	case doc.String:
		n = int64(letters(d))
	case doc.Number:
		n, ok = plainInteger(d)
	}
	return ok && (n == l.n || l.max == (n < l.n))
}

// letters returns how many characters a string has.
func letters(d gate.Doc) int {
	if raw := d.Raw(); bytes.IndexByte(raw, '\\') < 0 {
		return utf8.RuneCount(raw) - len(`""`)
	}
	return utf8.RuneCountInString(d.Text())
}

func (j *judge) object(s *simple, d gate.Doc) bool {
	members := doc.Len(d)
	if j.left -= members; j.left < 0 || members*(len(s.properties)+len(s.required)) > maxLookedUp {
		return false
	}
	for _, name := range s.required {
		if d.Get(name).IsZero() {
			return false
		}
	}
	known := 0
	for i := range s.properties {
		if v := d.Get(s.properties[i].name); !v.IsZero() {
			known++
			if !j.value(s.properties[i].is, v) {
				return false
			}
		}
	}
	if known == members || !s.closed && s.further == nil {
		return true
	}
	return !s.closed && j.others(s, d)
}

// others judges the members that the schema does not name.
func (j *judge) others(s *simple, d gate.Doc) bool {
	for name, v := range d.Members() {
		named := func(p property) bool { return p.name == name }
		if !slices.ContainsFunc(s.properties, named) && !j.value(s.further, v) {
			return false
		}
	}
	return true
}

func (j *judge) items(each *simple, d gate.Doc) bool {
	for v := range d.Elements() {
		if !j.value(each, v) {
			return false
		}
	}
	return true
}
