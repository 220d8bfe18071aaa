package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/decision"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
)

// unsuited warns of the user's rules that add to a set what no decision can hold: each call for
// which such a rule holds is refused.
func unsuited(c *ast.Compiler) []Problem {
	var problems []Problem
	for file, m := range c.Modules {
		if !isOwn(file) || !m.Package.Path.Equal(ast.MustParseRef("data.wasmgate")) {
			continue
		}
		for _, r := range m.Rules {
			set := string(r.Head.Name)
			if setExamples[set] == "" || r.Head.Key == nil {
				continue
			}
			if err := suits(set, written(r.Head.Key, r.Body)); err != nil {
				problems = append(problems, warn(r.Location, "%s cannot hold this, and each call that the rule is about would be refused: %v; write %s", set, err, setExamples[set]))
			}
		}
	}
	return problems
}

// written returns a term with the variables in it replaced by what a body sets them to, as far
// as that is written there.
func written(t *ast.Term, body ast.Body) *ast.Term {
	t = t.Copy()    // it is the compiler's
	const most = 20 // variables that are set to each other
	for range most {
		replaced := false
		next, err := ast.TransformVars(t.Value, func(v ast.Var) (ast.Value, error) {
			for _, e := range body {
				if !e.IsEquality() || e.Negated || len(e.With) > 0 {
					continue
				}
				for i, side := range e.Operands() {
					if other := e.Operand(1 - i).Copy().Value; side.Value.Compare(v) == 0 && !isVar(other) {
						replaced = true
						return other, nil
					}
				}
			}
			return v, nil
		})
		v, ok := next.(ast.Value)
		if err != nil || !ok || !replaced {
			break
		}
		t = ast.NewTerm(v)
	}
	return t
}

func isVar(v ast.Value) bool {
	_, ok := v.(ast.Var)
	return ok
}

// suits returns why a set cannot hold a value, nil if it can or if that is not known.
func suits(set string, t *ast.Term) error {
	known := engine.ConstantTerm(t)
	switch v := t.Value.(type) {
	case ast.Object:
		var names []string
		v.Foreach(func(k, _ *ast.Term) {
			if name, ok := k.Value.(ast.String); ok {
				names = append(names, string(name))
			}
		})
		slices.Sort(names)
		switch {
		case set == "obligations" && !known:
			return decision.CheckMembers(v, names)
		case set == "deny" && !known:
			if len(names) == v.Len() && !slices.Equal(names, []string{"reason", "scopes"}) {
				return fmt.Errorf("expected a text, or an object of reason and scopes, found one of %s", strings.Join(names, ", "))
			}
			return nil
		case !known:
			return fmt.Errorf("expected a text, found an object")
		}
	case ast.String, ast.Number, ast.Boolean, ast.Null:
	case *ast.Array, ast.Set, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		if !known {
			return fmt.Errorf("found %s", ast.ValueName(v))
		}
	default:
		return nil
	}
	var err error
	switch set {
	case "obligations":
		_, err = decision.ReadObligation(t.Value)
	case "labels":
		_, err = decision.Texts(ast.NewSet(t))
	case "deny":
		_, _, err = decision.Reasons(ast.NewSet(t), gate.Deny)
	default:
		_, _, err = decision.Reasons(ast.NewSet(t), gate.Allow)
	}
	return err
}
