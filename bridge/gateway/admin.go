package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/policy"
)

// Admin decides on an action of a person who runs the gateway. If changes is true, the action is
// recorded when Admin returns, before it is done; a denied action is recorded, too. The error is a
// [*gate.Refusal], or says why the action could not be decided or recorded: in both cases it must
// not be done.
func (g Operator) Admin(ctx context.Context, q policy.AdminQuery, changes bool) error {
	d, err := policy.Admin(ctx, g.Policy(), q)
	if err != nil {
		return fmt.Errorf("the policy cannot be evaluated: %w", err)
	}
	e := audit.Entry{
		Event: audit.Admin, Action: q.Action, Effect: d.Effect, Code: codes.OK, PolicyRevision: d.Revision,
		Tenant: q.Who.Tenant, Principal: q.Who.ID, Roles: q.Who.Roles, Reasons: []string{strings.TrimSpace(q.Op + " " + q.Object)},
	}
	if q.Who.Auth != gate.Local().Auth {
		e.Auth, e.Issuer, e.Credential = q.Who.Auth, q.Who.Issuer, q.Who.Credential
	}
	if d.Effect != gate.Allow {
		e.Code, e.Reasons = "refused_"+string(step.Authorize), append(e.Reasons, d.Reasons...)
	} else if !changes {
		return nil
	}
	if err := g.journal.note(e); err != nil {
		return fmt.Errorf("%s was not done, because it cannot be recorded: %w", q.Op, err)
	}
	if d.Effect != gate.Allow {
		return &gate.Refusal{Step: step.Authorize, Name: q.Op, Reason: strings.Join(d.Reasons, "; ")}
	}
	return nil
}
