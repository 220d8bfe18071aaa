package input

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A Kind is the kind of value that a part of the input has.
type Kind string

// The kinds. The zero Kind is any value.
const (
	Any    Kind = ""
	Text   Kind = "string"
	Bool   Kind = "boolean"
	Number Kind = "number"
	List   Kind = "array"
	Object Kind = "object" // its fields are known
	Map    Kind = "map"    // an object whose keys are data
)

// A Shape describes a part of the input.
type Shape struct {
	Kind   Kind
	Fields []Field // of an Object
	Open   bool    // whether an Object may have other members as well
	Empty  bool    // whether an Object may have no members at all
	Each   *Shape  // what a List or a Map holds
}

// A Field is a member of an Object.
type Field struct {
	Name     string
	About    string
	Shape    *Shape
	Optional bool
}

// Field returns the shape of a member, nil if there is none of this name.
func (s *Shape) Field(name string) *Shape {
	for _, f := range s.Fields {
		if f.Name == name {
			return f.Shape
		}
	}
	return nil
}

// Schema returns the JSON Schema of the shape, in the part of the language that OPA's type
// checker reads. The checker takes every property for present. An object that can lack some has
// an alternative, therefore, so that it can be compared with an object without these.
func (s *Shape) Schema() map[string]any {
	switch s.Kind {
	case Any:
		return map[string]any{}
	case List:
		return map[string]any{"type": "array", "items": s.Each.Schema()}
	case Map:
		return map[string]any{"type": "object", "additionalProperties": s.Each.Schema()}
	case Object:
		if s.Open {
			return map[string]any{"type": "object"}
		}
		object := s.closed()
		if properties, required := object["properties"].(map[string]any), object["required"].([]any); s.Empty || len(required) < len(properties) {
			return map[string]any{"anyOf": []any{object, map[string]any{"type": "object", "maxProperties": len(required)}}}
		}
		return object
	default:
		return map[string]any{"type": string(s.Kind)}
	}
}

// closed returns the JSON Schema of an Object that has no other members than its fields.
func (s *Shape) closed() map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, f := range s.Fields {
		property := f.Shape.Schema()
		if f.About != "" {
			property["description"] = f.About
		}
		properties[f.Name] = property
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// merged returns the shape of a value that has one of the given shapes, which are not none.
func merged(shapes []*Shape) *Shape {
	first := shapes[0]
	if !slices.ContainsFunc(shapes, func(s *Shape) bool { return s != first }) {
		return first
	}
	all := &Shape{Kind: Object}
	alternatives := map[string][]*Shape{}
	for _, s := range shapes {
		if s.Kind != Object {
			return &Shape{}
		}
		all.Open = all.Open || s.Open
		for _, f := range s.Fields {
			if alternatives[f.Name] == nil {
				all.Fields = append(all.Fields, f)
			}
			alternatives[f.Name] = append(alternatives[f.Name], f.Shape)
		}
	}
	for i := range all.Fields {
		f := &all.Fields[i]
		f.Optional = f.Optional || len(alternatives[f.Name]) < len(shapes)
		f.Shape = merged(alternatives[f.Name])
	}
	return all
}

var (
	text  = &Shape{Kind: Text}
	truth = &Shape{Kind: Bool}
	texts = listOf(text)
	open  = &Shape{Kind: Object, Open: true}
)

func listOf(each *Shape) *Shape { return &Shape{Kind: List, Each: each} }

func mapOf(each *Shape) *Shape { return &Shape{Kind: Map, Each: each} }

// A member is a field with its value in the object that describes a T; nil if the object
// does not have it.
type member[T any] struct {
	Field
	key   *ast.Term
	value func(T) *ast.Term
}

type members[T any] []member[T]

func has[T any](name string, shape *Shape, about string, value func(T) *ast.Term) member[T] {
	return member[T]{Field{Name: name, Shape: shape, About: about}, ast.InternedTerm(name), value}
}

// mayHave is for members that are left out of some objects.
func mayHave[T any](name string, shape *Shape, about string, value func(T) *ast.Term) member[T] {
	m := has(name, shape, about, value)
	m.Optional = true
	return m
}

// object returns the object that describes v.
func (m members[T]) object(v T) ast.Object {
	terms := make([][2]*ast.Term, 0, len(m))
	for _, one := range m {
		if t := one.value(v); t != nil {
			terms = append(terms, [2]*ast.Term{one.key, t})
		}
	}
	return ast.NewObject(terms...)
}

func (m members[T]) term(v T) *ast.Term { return ast.NewTerm(m.object(v)) }

func (m members[T]) shape() *Shape {
	s := &Shape{Kind: Object}
	for _, one := range m {
		s.Fields = append(s.Fields, one.Field)
	}
	return s
}

// orEmpty returns the shape of an object that can be empty instead.
func (s *Shape) orEmpty() *Shape {
	s.Empty = true
	return s
}

// objectOf returns the shape of an object that is built elsewhere.
func objectOf(fields ...Field) *Shape { return &Shape{Kind: Object, Fields: fields} }

func field(name string, shape *Shape, about string) Field {
	return Field{Name: name, Shape: shape, About: about}
}

func optional(name string, shape *Shape, about string) Field {
	return Field{Name: name, Shape: shape, About: about, Optional: true}
}

// param is a member that MCP names. What others send under the name can be any value.
func param(name string) Field { return optional(name, &Shape{}, "") }
