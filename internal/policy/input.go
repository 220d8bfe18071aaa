package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
)

// listingInput returns what is known of a use of t before it is made.
func (e *Engine) listingInput(who *ast.Term, t *gate.Tool) ast.Value {
	return e.inputs.Listing(actionsFor(t)[0], who, t)
}
