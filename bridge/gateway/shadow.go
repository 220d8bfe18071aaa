package gateway

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// Shadow tells how the shadow policy is, or nil if there is none.
func (g operator) Shadow() *study.ShadowStatus { return g.shadow.Status() }

// startShadow makes a shadow without a policy. It decides on calls once [operator.SetShadow] sets one.
func (g *Gateway) startShadow() {
	g.shadow = study.NewShadow(g.noteDifference)
	g.serving.Go(func() { g.shadow.Run(g.life) })
}

// SetShadow has a second policy decide on each call, in addition to the one in use and outside of
// the call's way: differences are recorded in the audit log, and nothing is enforced. Nil ends
// that. If p does not load, the one before it stays, and the error says why.
func (g operator) SetShadow(ctx context.Context, p *Policy) error {
	var engine *policy.Engine
	if p != nil {
		var err error
		if engine, err = policy.Load(ctx, p.Files, p.Options); err != nil {
			return fmt.Errorf("shadow policy: %w", err)
		}
	}
	g.setting.Lock()
	defer g.setting.Unlock()
	g.shadow.Set(engine)
	parts := g.gate.Parts()
	parts.TrackValues, parts.TrackOrigins = g.tracks(g.Policy())
	return g.gate.Swap(parts)
}

// tracks reports whether sessions keep where values came from, and by which calls: for the
// policy in use, or for the shadow policy.
func (g *Gateway) tracks(e *policy.Engine) (values, origins bool) {
	values, origins = e.Tracks()
	if second := g.shadow.Policy(); second != nil {
		v, o := second.Tracks()
		return values || v, origins || o
	}
	return values, origins
}

// noteDifference records a call on which the shadow policy would have decided
// otherwise. The arguments are in the records of the call.
func (g *Gateway) noteDifference(d study.Difference) {
	c := d.Query.Call
	e := audit.Entry{
		Event: audit.Shadow, ID: c.ID, Parent: c.Parent, Action: c.Action, Session: c.Session.ID,
		Tenant: c.Who.Tenant, Principal: c.Who.ID, Roles: c.Who.Roles,
		Server: d.Query.Tool.Name.Server, Tool: d.Query.Subject(), ToolDigest: d.Query.Tool.Digest,
		Effect: d.Decision.Effect, Reasons: d.Decision.Reasons, PolicyRevision: d.Decision.Revision,
		Snapshot: g.gate.Parts().Snapshot,
		Shadow: audit.ShadowDecision{
			Effect: d.Shadow.Effect, Reasons: d.Shadow.Reasons, Revision: d.Shadow.Revision, Differs: d.Differs,
		},
	}
	if d.Err != nil {
		e.Shadow.Error = d.Err.Error()
	}
	if err := g.note(e); err != nil {
		g.cfg.Log.Error("shadow difference not recorded", "call", c.ID, "error", err)
	}
}
