package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// tracks reports whether a rule may look at where values came from: whether one
// mentions input.provenance, input.carried or input.values, or the input as a whole; and
// whether one may look at input.values.
func (s *source) tracks() (values, origins bool) {
	for _, m := range s.rules {
		v, o := mentions(m, "provenance", "carried", "values"), mentions(m, "values")
		values, origins = values || v, origins || o
	}
	return values, origins
}

// mentions reports whether rules look at one of the named parts of the input, or at the
// input as a whole.
func mentions(x any, names ...string) (found bool) {
	ast.WalkTerms(x, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			found = found || v.Equal(ast.InputRootDocument.Value)
		case ast.Ref:
			for _, part := range v[1:] {
				found = found || mentions(part, names...)
			}
			if v[0].Equal(ast.InputRootDocument) {
				name := ast.String("")
				if len(v) > 1 {
					name, _ = v[1].Value.(ast.String)
				}
				found = found || name == "" || slices.Contains(names, string(name))
			}
			return true
		}
		return found
	})
	return found
}
