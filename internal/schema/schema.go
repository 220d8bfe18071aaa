package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Schema is a compiled JSON Schema. Use it from several goroutines.
type Schema struct {
	compiled *jsonschema.Schema
	root     *part
	simple   *simple // nil if it is not
}

var _ gate.Schema = (*Schema)(nil)

// Compile compiles a schema. The error says what is wrong, after the JSON
// Pointer of the place if there is one: it stands on one line, is at most about
// 600 bytes long, and quotes the schema.
func Compile(raw gate.Doc) (s *Schema, err error) {
	defer func() {
		if v := recover(); v != nil {
			s, err = nil, fmt.Errorf("the compiler of schemas panicked: %v", v)
		}
	}()
	if k := raw.Kind(); k != doc.Object && k != doc.Bool {
		return nil, errors.New("a schema is an object or a boolean")
	}
	found, err := examine(raw)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(make(patterns).compile)
	if err := c.AddResource(location, raw.Value()); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, explain(raw, err)
	}
	root, err := newGraph(c, compiled, found.anchors)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled, root, newSimple(raw)}, nil
}

// noLoader loads nothing.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("nothing is loaded") }

// Validate returns nil if d is as the schema says, and [doc.Violations] if it
// is not: the leftmost 50 in the order of the document. Their messages name
// keywords, limits, allowed values and members, never a value of d; each is at
// most 300 bytes long. Within anyOf and oneOf a message says which alternative
// it speaks of, counted from 0.
//
// Any other error means that d could not be checked.
func (s *Schema) Validate(d gate.Doc) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the validator of schemas panicked: %v", v)
		}
	}()
	if d.IsZero() {
		return errors.New("there is no document to check")
	}
	if s.simple != nil && s.simple.accepts(d) {
		return nil
	}
	return s.validate(d)
}

// validate has the validator judge.
func (s *Schema) validate(d gate.Doc) error {
	v := d.Value()
	if m := (meter{left: maxUnits}); !m.visit(s.root, v) {
		return errors.New("the document is too large to be checked against this schema")
	}
	err := s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return err
	}
	return violations(d, broken)
}

// explain puts the compiler's errors into words that suit a reader who sees
// only the schema.
func explain(raw gate.Doc, err error) error {
	var invalid *jsonschema.SchemaValidationError
	var load *jsonschema.LoadURLError
	var noAnchor *jsonschema.AnchorNotFoundError
	var noPlace *jsonschema.JSONPointerNotFoundError
	switch {
	case errors.As(err, &invalid):
		var broken *jsonschema.ValidationError
		if errors.As(invalid.Err, &broken) {
			return brokenSchema(raw, pointer.Path(fragment(invalid.URL)), broken)
		}
	case errors.As(err, &load):
		document := func(name string, v gate.Doc) bool {
			ref, _, _ := strings.Cut(v.Text(), "#")
			return references[name] && ref != "" && strings.HasSuffix(load.URL, ref)
		}
		return keywordError(findMember(raw, document), "the schema refers to another document, %q", cut(strings.TrimPrefix(load.URL, base), maxName))
	case errors.As(err, &noAnchor):
		return nowhere(raw, noAnchor.Reference)
	case errors.As(err, &noPlace):
		return nowhere(raw, noPlace.URL)
	}
	return errors.New(printable(strings.ReplaceAll(err.Error(), location, ""), 2*maxMessage))
}

// nowhere is the error of a reference to a place of the schema that it does not have.
func nowhere(raw gate.Doc, url string) error {
	to := fragment(url)
	leads := func(name string, v gate.Doc) bool {
		return references[name] && v.Kind() == doc.String && fragment(v.Text()) == to
	}
	within := func(name string, v gate.Doc) bool { // a part that has an id of its own
		f := fragment(v.Text())
		return references[name] && f != "" && strings.HasSuffix(to, f)
	}
	path := findMember(raw, leads)
	if len(path) == 0 {
		path = findMember(raw, within)
	}
	return keywordError(path, "the schema refers to %s, which does not exist", quote("#"+to))
}
