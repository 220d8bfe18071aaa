package tables

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// groupLookup is of what is in groups. The name is that of a tool or a prompt, or a URI,
// which a grant can except.
var groupLookup = grantLookup("wasmgate.granted_group", "(grants, groups, name, id, roles)", grantedGroup, types.NewArray(nil, types.S), types.S)

func grantedGroup(ix Index, who []Subject, asked []*ast.Term) (*ast.Term, bool) {
	groups, ok1 := asked[0].Value.(*ast.Array)
	name, ok2 := asked[1].Value.(ast.String)
	if !ok1 || !ok2 {
		return nil, false
	}
	var best first
	for _, s := range who {
		if g := ix[s]; g != nil {
			g.inGroups(groups, func(e *Entry) {
				if !e.Except.matches(string(name)) {
					best.offer(e)
				}
			})
		}
	}
	return best.reason(), true
}

// inGroups calls f with the entries that grant what is in one of the groups.
func (g *Row) inGroups(groups *ast.Array, f func(*Entry)) {
	for i := range groups.Len() {
		group, _ := groups.Elem(i).Value.(ast.String)
		for _, e := range g.groups[string(group)] {
			f(e)
		}
	}
}
