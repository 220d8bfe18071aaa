package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
)

// A Lookup is a built-in function by which a pack asks a list, such as the grants, what it
// has for a principal:
//
//	name(list, ..., id, roles) answer
//
// It is a built-in and not Rego, because to find the prefixes of a name in Rego costs more
// than the rest of the decision. The list is an argument, so that a test can put another in
// its place.
type Lookup struct {
	Decl   *rego.Function
	takes  string // its arguments, for its errors
	answer answer
}

// An answer answers a lookup. Asked are the arguments between the list and the id. A nil
// term is undefined; ok is false if one of the arguments is of another kind.
type answer func(ix Index, who []Subject, asked []*ast.Term) (t *ast.Term, ok bool)

// declare returns the declaration of a lookup, whose arguments between the list and the id
// have the given types.
func declare(name string, result types.Type, asked ...types.Type) *rego.Function {
	args := slices.Concat([]types.Type{types.NewArray(nil, types.A)}, asked, []types.Type{types.S, types.NewArray(nil, types.S)})
	return &rego.Function{Name: name, Decl: types.NewFunction(types.Args(args...), result)}
}

// Over gives an evaluation the function. It looks into ix if it is asked about list, from
// which ix was made, and else into the index that read makes of what it is asked about.
func (l Lookup) Over(list ast.Value, ix Index, read func(ast.Value) (Index, error)) func(*rego.Rego) {
	last := l.Decl.Decl.Arity() - 2 // OPA may hand over more: where the result goes
	return rego.FunctionDyn(l.Decl, func(_ rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		ix := ix
		if args[0].Value != list {
			var err error
			if ix, err = read(args[0].Value); err != nil {
				return nil, err
			}
		}
		who, ok := subjectsOf(args[last], args[last+1])
		if ok {
			var t *ast.Term
			if t, ok = l.answer(ix, who, args[1:last]); ok {
				return t, nil
			}
		}
		return nil, errors.New(l.Decl.Name + ": expected " + l.takes)
	})
}

// Entries reads a list that replaces data.name.
func Entries[T any](name string, list ast.Value) ([]T, error) {
	x, err := ast.JSON(list)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var entries []T
	if err := d.Decode(&entries); err != nil {
		return nil, fmt.Errorf("data.%s: %w", name, err)
	}
	return entries, nil
}

// first is the entry that comes first in its list. The zero first is none.
type first struct{ entry *Entry }

// offer takes e if it comes before what was offered until now.
func (f *first) offer(e *Entry) {
	if f.entry == nil || e.Order < f.entry.Order {
		f.entry = e
	}
}

// reason returns the reason of the entry, nil if there is none.
func (f *first) reason() *ast.Term {
	if f.entry == nil {
		return nil
	}
	return f.entry.Reason
}
