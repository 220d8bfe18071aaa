package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/policy"
)

// ShadowStatus tells how the shadow policy is.
type ShadowStatus struct {
	Revision string `json:"policy_revision,omitempty"` // "" if none was set
	policy.ShadowCounts
}

// Shadow tells how the shadow policy is, or nil if there is none.
func (g *Gateway) Shadow() *ShadowStatus {
	if g.shadow == nil {
		return nil
	}
	s := &ShadowStatus{ShadowCounts: g.shadow.Counts()}
	if e := g.shadow.Policy(); e != nil {
		s.Revision = e.Revision()
	}
	return s
}

// withShadow has the shadow policy told of each call, too, if there is to be one.
func (g *Gateway) withShadow(r gate.Recorder) gate.Recorder {
	if !g.cfg.Shadow {
		return r
	}
	g.shadow = policy.NewShadow(g.noteDifference)
	g.serving.Go(func() { g.shadow.Run(g.life) })
	return gate.Recorders(r, g.shadow)
}

// SetShadow puts another policy in the place of the shadow policy; before the first
// there is nothing to compare with. If it does not load the old one stays, and the
// error says why.
func (g *Gateway) SetShadow(ctx context.Context, p Policy) error {
	if g.shadow == nil {
		return errors.New("the gateway has no shadow policy")
	}
	engine, err := policy.Load(ctx, p.Files, p.Options)
	if err != nil {
		return fmt.Errorf("shadow policy: %w", err)
	}
	g.setting.Lock()
	defer g.setting.Unlock()
	g.shadow.Set(engine)
	parts := g.gate.Parts()
	parts.TrackValues, parts.TrackOrigins = g.tracksValues(g.Policy()), g.tracksOrigins(g.Policy())
	return g.gate.Swap(parts)
}

// tracksValues reports whether sessions keep where values came from: for the policy
// in use, or for the shadow policy.
func (g *Gateway) tracksValues(e *policy.Engine) bool {
	return g.either(e, (*policy.Engine).TracksValues)
}

// tracksOrigins is tracksValues for the calls by which values came.
func (g *Gateway) tracksOrigins(e *policy.Engine) bool {
	return g.either(e, (*policy.Engine).TracksOrigins)
}

func (g *Gateway) either(e *policy.Engine, tracks func(*policy.Engine) bool) bool {
	if tracks(e) || g.shadow == nil {
		return tracks(e)
	}
	second := g.shadow.Policy()
	return second != nil && tracks(second)
}

// noteDifference records a call on which the shadow policy would have decided
// otherwise. The arguments are in the records of the call.
func (g *Gateway) noteDifference(d policy.Difference) {
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
