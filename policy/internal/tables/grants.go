package tables

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// Grants are the functions by which the pack grants asks. Each answers with the
// reason of the first grant, in the order of the file, that grants what it is asked about.
var Grants = []Lookup{Granted, groupLookup, askLookup, resourceLookup, templateLookup, skillLookup, methodLookup}

// grantLookup returns a lookup in the grants.
func grantLookup(name, takes string, a answer, asked ...types.Type) Lookup {
	return Lookup{declare(name, types.S, asked...), takes, a}
}

// Granted is of what is granted by its name alone.
var Granted = grantLookup("wasmgate.granted", "(grants, kind, name, id, roles)", granted, types.S, types.S)

func granted(ix Index, who []Subject, asked []*ast.Term) (*ast.Term, bool) {
	kind, ok1 := asked[0].Value.(ast.String)
	name, ok2 := asked[1].Value.(ast.String)
	var best first
	for _, s := range who {
		ix.each(s, string(kind), string(name), best.offer)
	}
	return best.reason(), ok1 && ok2
}
