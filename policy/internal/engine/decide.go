package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/policy/internal/decision"
)

// Authorize implements [gate.Authorizer].
func (e *Engine) Authorize(ctx context.Context, q gate.Query) (d gate.Decision, err error) {
	defer Recover(&err, func() { d = gate.Decision{} })
	if q, err = e.Checked(q); err != nil {
		return gate.Decision{}, err
	}
	if q.Tool.Feature == gate.FeatureTool && q.Call.Action == gate.CallTool {
		return e.specialise(ctx, q)
	}
	return e.Full(ctx, q)
}

// Checked returns the query as it is decided on, or why it cannot be.
func (e *Engine) Checked(q gate.Query) (gate.Query, error) {
	switch {
	case q.Call == nil || q.Call.Who == nil || q.Tool == nil:
		return q, errors.New("policy: the query names no call, no principal or no tool")
	case !decides(q):
		return q, fmt.Errorf("policy: action %q is not decided in this version", q.Call.Action)
	case q.Session.Top && e.Every == nil:
		return q, errors.New("policy: the session has read more than could be kept, and the policy computes the names of labels, so no decision is possible")
	case q.Session.Top:
		q.Session.Labels = q.Session.Labels.Join(e.Every)
	}
	return q, nil
}

// Full evaluates the policy on a query.
func (e *Engine) Full(ctx context.Context, q gate.Query) (gate.Decision, error) {
	_, d, err := e.Decide(ctx, e.Inputs.Input(q))
	if err != nil {
		return gate.Decision{}, err
	}
	return e.complete(ctx, q, d), nil
}

// complete completes a denial. That of a host call, of a request to the client, or of an
// agent's own tool hides no tool: its caller knows the tool.
func (e *Engine) complete(ctx context.Context, q gate.Query, d gate.Decision) gate.Decision {
	if d.Effect != gate.Deny {
		return d
	}
	if len(d.Reasons) == 0 {
		d.Reasons = []string{NothingAllows(Subject(q), q.Call.Who.ID)}
		d.Remedy = e.Remedy(q)
	}
	if Within(q.Call.Action) || q.Call.Action == actions.AgentCall {
		return d
	}
	visible, err := e.Visible(ctx, q.Call.Who, []*gate.Tool{q.Tool})
	d.Hidden = err != nil || !visible[0]
	if !d.Hidden && q.Call.Action == gate.CallTool { // a rule allows other calls of the tool: a grant would allow all
		d.Remedy = ""
	}
	return d
}

// Decide evaluates the policy on one input. It returns the decision as Rego
// made it, too.
func (e *Engine) Decide(ctx context.Context, input ast.Value) (ast.Object, gate.Decision, error) {
	v, err := e.eval(ctx, e.decision, input)
	if err != nil {
		return nil, gate.Decision{}, err
	}
	o, ok := v.(ast.Object)
	if !ok {
		return nil, gate.Decision{}, errors.New("policy: data.wasmgate.decision is not an object")
	}
	d, err := e.decode(o)
	return o, d, err
}

// decode reads a decision that Rego made.
func (e *Engine) decode(o ast.Object) (gate.Decision, error) {
	d, err := decision.Read(o)
	if err != nil {
		return gate.Decision{}, fmt.Errorf("policy: data.wasmgate.decision: %w", err)
	}
	d.Revision = e.Revision
	return d, nil
}
