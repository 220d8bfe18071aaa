package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// methodLookup is of methods that MCP does not have. Method is the input's, {name, server,
// groups}.
var methodLookup = grantLookup("wasmgate.granted_method", "(grants, method, id, roles)", grantedMethod, anObject)

func grantedMethod(ix index, who []subject, asked []*ast.Term) (*ast.Term, bool) {
	method, ok := asked[0].Value.(ast.Object)
	if !ok {
		return nil, false
	}
	best := ix.using(who, "methods", method, func(*entry) bool { return true })
	return best.reason(), true
}
