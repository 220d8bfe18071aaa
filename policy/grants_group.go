package policy

import (
	"errors"
	"regexp"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
)

// groupDecl declares the built-in function by which the pack grants asks about what is
// in groups:
//
//	wasmgate.granted_group(grants, groups, name, id, roles) reason
//
// The name is that of a tool or a prompt, or a URI, which a grant can except.
var groupDecl = &rego.Function{
	Name: "wasmgate.granted_group",
	Decl: types.NewFunction(types.Args(
		types.NewArray(nil, types.A), types.NewArray(nil, types.S), types.S, types.S, types.NewArray(nil, types.S),
	), types.S),
}

// groupBuiltin is as [grantedBuiltin].
func groupBuiltin(list ast.Value, ix index) func(*rego.Rego) {
	return rego.FunctionDyn(groupDecl, func(_ rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		groups, ok1 := args[1].Value.(*ast.Array)
		if ok1 && groups.Len() == 0 {
			return nil, nil // undefined, as for most
		}
		ix, err := indexOf(args[0].Value, list, ix)
		if err != nil {
			return nil, err
		}
		name, ok2 := args[2].Value.(ast.String)
		if !ok1 || !ok2 {
			return nil, errors.New(groupDecl.Name + ": expected (grants, groups, name, id, roles)")
		}
		who, err := subjectsOf(args[3], args[4])
		if err != nil {
			return nil, err
		}
		if best := ix.group(who, groups, string(name)); best != nil {
			return best.reason, nil
		}
		return nil, nil // undefined
	})
}

// group returns the first of the grants, in the order of the file, of one of the groups
// to one of the subjects that does not except name; nil if there is none.
func (ix index) group(who []subject, groups *ast.Array, name string) (best *entry) {
	for _, s := range who {
		g := ix[s]
		if g == nil {
			continue
		}
		for i := range groups.Len() {
			group, _ := groups.Elem(i).Value.(ast.String)
			for _, e := range g.groups[string(group)] {
				if (best == nil || e.order < best.order) && !e.except.matches(name) {
					best = e
				}
			}
		}
	}
	return best
}

var groupName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

func checkGroup(group string) error {
	if !groupName.MatchString(group) {
		return errors.New("a group is named by lower-case letters, digits and -")
	}
	return nil
}
