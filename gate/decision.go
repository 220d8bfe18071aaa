package gate

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/gate/obligation"
)

// A Query is what an [Authorizer] decides on.
type Query struct {
	Call    *Call
	Tool    *Tool
	Session Session
}

// Subject names what the query is about: the qualified name of a tool or of a
// prompt, the URI of a resource or a skill as its server has it, or what the call names of a
// template.
func (q Query) Subject() string {
	switch q.Tool.Feature {
	case FeatureResource, FeatureTemplate, FeatureSkill:
		if q.Call == nil {
			return q.Tool.Local
		}
		return q.Call.URI(q.Tool)
	default:
		return q.Tool.named()
	}
}

// An Authorizer decides.
type Authorizer interface {
	// Authorize decides on one call. An error denies it; one that wraps [ErrOverdue]
	// refuses it as a gateway does that is busy.
	Authorize(ctx context.Context, q Query) (Decision, error)
	// Visible returns, for each tool, whether any call of it by the principal could pass. An error
	// hides them all.
	Visible(ctx context.Context, who *Principal, tools []*Tool) ([]bool, error)
	// Offer returns the definition of a visible tool as the principal should see it, or the tool's
	// own: it may leave out only what would be refused.
	Offer(ctx context.Context, who *Principal, t *Tool) Doc
}

// ErrOverdue says that no decision was reached in time, through no fault of the call's:
// the same call may pass when there is less to do.
var ErrOverdue = errors.New("the gateway is too busy to decide")

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

// passes reports whether a call can pass, if a person approves of it perhaps.
func (d Decision) passes() bool { return d.Effect == Allow || d.Effect == Ask }

// approvers are what a decision demands of who approves it.
func (d Decision) approvers() (all []obligation.Approve) {
	for _, o := range d.Obligations {
		if a, ok := o.(obligation.Approve); ok && (len(a.By) > 0 || a.NotSelf) {
			all = append(all, a)
		}
	}
	return all
}
