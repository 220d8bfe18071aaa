package gateway

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// Shadow tells how the shadow policy is, or nil if there is none.
func (g Operator) Shadow() *study.ShadowStatus { return g.policies.shadow.Status() }

// SetShadow has a second policy decide on each call, in addition to the one in use and outside of
// the call's way: differences are recorded in the audit log, and nothing is enforced. Nil ends
// that. If p does not load, the one before it stays, and the error says why.
func (g Operator) SetShadow(ctx context.Context, p *Policy) error {
	var engine *policy.Engine
	if p != nil {
		var err error
		if engine, err = policy.Load(ctx, p.Files, p.Options); err != nil {
			return fmt.Errorf("shadow policy: %w", err)
		}
	}
	g.setting.Lock()
	defer g.setting.Unlock()
	g.policies.shadow.Set(engine)
	parts := g.gate.Parts()
	parts.TrackValues, parts.TrackOrigins = g.policies.tracks(g.Policy())
	return g.gate.Swap(parts)
}
