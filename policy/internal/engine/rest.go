package engine

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Constant reports whether what is left of a rule is true whatever the unknowns
// are. What is left then is the reason, or a variable that is given it; anything
// else counts as a condition.
func Constant(body ast.Body) bool {
	if len(body) == 0 {
		return true
	}
	expr := body[0]
	if len(body) > 1 || expr.Negated || len(expr.With) > 0 {
		return false
	}
	if t, ok := expr.Terms.(*ast.Term); ok {
		_, boolean := t.Value.(ast.Boolean)
		return !boolean && ConstantTerm(t)
	}
	return expr.IsEquality() && (assigns(expr.Operand(0), expr.Operand(1)) || assigns(expr.Operand(1), expr.Operand(0)))
}

// Lifted reports whether what is left of a rule of deny, and constant, is a denial that other
// scopes would lift: what it denies is not hidden, or no one would ask for them.
func Lifted(body ast.Body) bool {
	found := false
	ast.WalkTerms(body, func(t *ast.Term) bool {
		_, ok := t.Value.(ast.Object)
		found = found || ok
		return found
	})
	return found
}

// assigns reports whether a = b gives the variable a the value b.
func assigns(a, b *ast.Term) bool {
	_, ok := a.Value.(ast.Var)
	return ok && ConstantTerm(b)
}

// All reports whether each body is as f says.
func All(bodies []ast.Body, f func(ast.Body) bool) bool {
	return !slices.ContainsFunc(bodies, func(b ast.Body) bool { return !f(b) })
}

// ConstantTerm reports whether a term is a value already.
func ConstantTerm(t *ast.Term) bool {
	found := false
	ast.WalkTerms(t, func(t *ast.Term) bool {
		switch t.Value.(type) {
		case ast.Ref, ast.Call, ast.Var, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			found = true
		}
		return found
	})
	return !found
}
