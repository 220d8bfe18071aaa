package gate

import (
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// A Query is what an [Authorizer] decides on.
type Query struct {
	Call    *Call
	Tool    *Tool
	Session Session
}

// An Effect is the outcome of a decision. The zero Effect denies.
type Effect string

// The effects, from the strongest to the weakest.
const (
	Deny  Effect = "deny"
	Ask   Effect = "ask" // a person has to approve the call
	Allow Effect = "allow"
)

// A Decision is what an [Authorizer] answers. The zero Decision denies.
type Decision struct {
	Effect  Effect
	Reasons []string // shown to the caller
	// Scopes, of a denial, are those that a caller's access token lacks, and with which nothing
	// would deny the call; none if that is not known, or would not do.
	Scopes []string
	// Obligations must all be met for the call to pass.
	Obligations []obligation.Obligation
	// Labels are added to the session when the call is admitted.
	Labels Labels
	// Hidden says that no call of this tool could pass for this principal: to
	// the client the tool does not exist.
	Hidden bool
	// Remedy is the command by which the operator would allow the call, or what to
	// write where, if there is such. It is never shown to a client.
	Remedy string
	// Revision is a hash of the policy that decided.
	Revision string
}

// Asked returns the decision as it holds for a call: under the obligation
// [obligation.Approve] what is allowed is asked.
func (d Decision) Asked() Decision {
	if d.Effect != Allow {
		return d
	}
	for _, o := range d.Obligations {
		if _, ok := o.(obligation.Approve); ok {
			d.Effect = Ask
			d.Reasons = append([]string{"the policy obliges to ask"}, d.Reasons...)
			return d
		}
	}
	return d
}
