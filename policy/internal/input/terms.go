package input

import (
	"encoding/json"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

var (
	emptyObject = ast.ObjectTerm()
	emptyArray  = ast.ArrayTerm()
)

// ArgumentsRef is the part of the input that has the arguments.
var ArgumentsRef = ast.MustParseRef("input.arguments")

// Texts returns a list of texts as policies see it.
func Texts(list []string) *ast.Term {
	if len(list) == 0 {
		return emptyArray
	}
	a := make([]*ast.Term, len(list))
	for i, s := range list {
		a[i] = ast.StringTerm(s)
	}
	return ast.ArrayTerm(a...)
}

func docOrObject(d gate.Doc) *ast.Term {
	if d.IsZero() {
		return emptyObject
	}
	return Doc(d)
}

// Doc returns the value of a document that is not absent. Numbers keep all of their digits.
func Doc(d gate.Doc) *ast.Term {
	switch d.Kind() {
	case doc.Bool:
		return ast.InternedTerm(d.True())
	case doc.Number:
		return ast.NumberTerm(json.Number(d.Raw()))
	case doc.String:
		return ast.StringTerm(d.Text())
	case doc.Array:
		var a []*ast.Term
		for e := range d.Elements() {
			a = append(a, Doc(e))
		}
		return ast.ArrayTerm(a...)
	case doc.Object:
		var m [][2]*ast.Term
		for k, v := range d.Members() {
			m = append(m, [2]*ast.Term{ast.StringTerm(k), Doc(v)})
		}
		return ast.ObjectTerm(m...)
	default:
		return ast.NullTerm()
	}
}

// Pair returns a member of an object, for [ast.ObjectTerm].
func Pair(name string, v *ast.Term) [2]*ast.Term { return [2]*ast.Term{ast.InternedTerm(name), v} }

// Member returns the value of a member of an object, nil if there is none.
func Member(o ast.Object, name string) ast.Value {
	if t := o.Get(ast.InternedTerm(name)); t != nil {
		return t.Value
	}
	return nil
}

// MemberText returns the text of an object's member, "" if there is none.
func MemberText(o ast.Object, name string) string {
	s, _ := Member(o, name).(ast.String)
	return string(s)
}
