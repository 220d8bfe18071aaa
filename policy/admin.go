package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// An AdminQuery is what somebody who runs the gateway would do. Policies see it as
// input.admin, {op, object, operator}.
type AdminQuery struct {
	Who    *gate.Principal
	Action gate.Action // admin/read, admin/approve, admin/pin or admin/grant
	Op     string      // what is done, such as calls.read or approval.decide
	Object string      // with what: the id of a call or an approval, a server, a session; may be empty
	// Operator says that it is the operator of this machine: who may open the control
	// socket, or has signed in by it.
	Operator bool
}

// Admin decides on what somebody who runs the gateway would do. Nothing but [gate.Allow] lets
// it pass. An error denies it.
func Admin(ctx context.Context, e *Engine, q AdminQuery) (d gate.Decision, err error) {
	defer engine.Recover(&err, func() { d = gate.Decision{} })
	if q.Who == nil {
		return gate.Decision{}, errors.New("policy: the call has no principal")
	}
	switch q.Action {
	case "admin/read", "admin/approve", "admin/pin", "admin/grant":
	default:
		return gate.Decision{}, fmt.Errorf("policy: %q is not an action of those who run a gateway", q.Action)
	}
	_, d, err = e.engine.Decide(ctx, input.ForAdmin(input.Admin{Who: q.Who, Action: q.Action, Op: q.Op, Object: q.Object, Operator: q.Operator}))
	if err == nil && d.Effect != gate.Allow && len(d.Reasons) == 0 {
		d.Reasons = []string{engine.NothingAllows(string(q.Action)+" "+q.Op, q.Who.ID)}
	}
	return d, err
}
