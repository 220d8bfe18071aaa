package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/policy"
)

// Policy returns the policy in use.
func (g operator) Policy() *policy.Engine { return g.engine.Load() }

// SetPolicy puts another policy in the place of the one in use, whole, and tells
// the clients. If it does not load the old one stays, and the error says why;
// the audit log keeps either.
func (g *Gateway) SetPolicy(ctx context.Context, p Policy) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	old := g.engine.Load()
	engine, err := policy.Load(ctx, p.Files, p.Options)
	entry := audit.Entry{Event: audit.Policy, Code: codes.OK}
	if err != nil {
		entry.Code, entry.Error, entry.PolicyRevision = "failed", err.Error(), old.Revision()
		return errors.Join(err, g.note(entry))
	}
	if engine.Revision() == old.Revision() {
		return nil
	}
	entry.PolicyRevision = engine.Revision()
	if err := g.note(entry); err != nil {
		return fmt.Errorf("the policy was not changed: %w", err)
	}
	parts := g.gate.Parts()
	g.decide(&parts, engine)
	if err := g.gate.Swap(parts); err != nil {
		return err
	}
	g.use(ctx, engine)
	g.host.Changed()
	return nil
}

// use has an engine be the policy in use, and tells of rules that look as if they held.
func (g *Gateway) use(ctx context.Context, engine *policy.Engine) {
	if old := g.engine.Swap(engine); old != nil && old.Revision() == engine.Revision() {
		return
	}
	for _, p := range engine.Idle() {
		g.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "policy rule without effect", slog.String("file", p.File), slog.Int("line", p.Line), slog.String("why", p.Message))
	}
}

// PolicyRefused records, as an event of the policy, why one could not even be read.
// The one in use stays.
func (g operator) PolicyRefused(err error) error {
	return g.note(audit.Entry{Event: audit.Policy, Code: "failed", Error: err.Error(), PolicyRevision: g.Policy().Revision()})
}

// decide has a policy decide.
func (g *Gateway) decide(parts *gate.Parts, by *policy.Engine) {
	parts.Authorizer, parts.Labeler = by, by
	parts.TrackValues, parts.TrackOrigins = g.tracks(by)
}
