package policy

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
)

// provenance returns what policies see of where the arguments of a call came
// from: input.provenance, the sources of each value by its JSON Pointer, and
// input.carried, those of each address that stands within a text.
func provenance(q gate.Query) (values, carried *ast.Term) {
	var v, c [][2]*ast.Term
	for a := range q.Session.Values.Arguments(q.Tool, q.Call.Args) {
		at := ast.StringTerm(a.Pointer)
		v = append(v, [2]*ast.Term{at, stringArray(a.Source.Names())})
		if a.Kind != gate.String {
			continue
		}
		found := q.Session.Values.Carried(a.Text)
		if len(found) == 0 {
			continue
		}
		var within [][2]*ast.Term
		for _, address := range slices.Sorted(maps.Keys(found)) {
			within = append(within, [2]*ast.Term{ast.StringTerm(address), stringArray(found[address].Names())})
		}
		c = append(c, [2]*ast.Term{at, ast.ObjectTerm(within...)})
	}
	return ast.ObjectTerm(v...), ast.ObjectTerm(c...)
}

// TracksValues reports whether a rule may look at where values came from, so that
// sessions have to keep that.
func (e *Engine) TracksValues() bool { return e.terms.tracks }

// tracks reports whether a rule may look at where values came from: whether one
// mentions input.provenance or input.carried, or the input as a whole.
func (s *source) tracks() bool {
	for _, m := range s.rules {
		if mentionsOrigin(m) {
			return true
		}
	}
	return false
}

func mentionsOrigin(x any) (found bool) {
	ast.WalkTerms(x, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			found = found || v.Equal(ast.InputRootDocument.Value)
		case ast.Ref:
			for _, part := range v[1:] {
				found = found || mentionsOrigin(part)
			}
			if v[0].Equal(ast.InputRootDocument) {
				name := ast.String("")
				if len(v) > 1 {
					name, _ = v[1].Value.(ast.String)
				}
				found = found || name == "" || name == "provenance" || name == "carried"
			}
			return true
		}
		return found
	})
	return found
}
