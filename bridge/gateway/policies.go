package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// policies are the policy that decides, and the shadow policy.
type policies struct {
	engine atomic.Pointer[policy.Engine]
	shadow *study.Shadow // which has a policy if [Operator.SetShadow] was given one
	log    *slog.Logger
}

// Policy returns the policy in use.
func (g Operator) Policy() *policy.Engine { return g.policies.engine.Load() }

// SetPolicy puts another policy in the place of the one in use, whole, and tells
// the clients. If it does not load the old one stays, and the error says why;
// the audit log keeps either.
func (g *Gateway) SetPolicy(ctx context.Context, p Policy) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	old := g.policies.engine.Load()
	engine, err := policy.Load(ctx, p.Files, p.Options)
	entry := audit.Entry{Event: audit.Policy, Code: codes.OK}
	if err != nil {
		entry.Code, entry.Error, entry.PolicyRevision = "failed", err.Error(), old.Revision()
		return errors.Join(err, g.journal.note(entry))
	}
	if engine.Revision() == old.Revision() {
		return nil
	}
	entry.PolicyRevision = engine.Revision()
	if err := g.journal.note(entry); err != nil {
		return fmt.Errorf("the policy was not changed: %w", err)
	}
	parts := g.gate.Parts()
	g.policies.decide(&parts, engine)
	if err := g.gate.Swap(parts); err != nil {
		return err
	}
	g.policies.use(ctx, engine)
	g.host.Changed()
	return nil
}

// use has an engine be the policy in use, and tells of rules that look as if they held.
func (p *policies) use(ctx context.Context, engine *policy.Engine) {
	if old := p.engine.Swap(engine); old != nil && old.Revision() == engine.Revision() {
		return
	}
	for _, idle := range engine.Idle() {
		p.log.LogAttrs(ctx, slog.LevelWarn, "policy rule without effect", slog.String("file", idle.File), slog.Int("line", idle.Line), slog.String("why", idle.Message))
	}
}

// PolicyRefused records, as an event of the policy, why one could not even be read.
// The one in use stays.
func (g Operator) PolicyRefused(err error) error {
	return g.journal.note(audit.Entry{Event: audit.Policy, Code: "failed", Error: err.Error(), PolicyRevision: g.Policy().Revision()})
}

// decide has a policy decide.
func (p *policies) decide(parts *gate.Parts, by *policy.Engine) {
	parts.Authorizer, parts.Labeler = by, by
	parts.TrackValues, parts.TrackOrigins = p.tracks(by)
}

// tracks reports whether sessions keep where values came from, and by which calls: for the
// policy in use, or for the shadow policy.
func (p *policies) tracks(e *policy.Engine) (values, origins bool) {
	values, origins = e.Tracks()
	if second := p.shadow.Policy(); second != nil {
		v, o := second.Tracks()
		return values || v, origins || o
	}
	return values, origins
}

// load loads a policy. The audit log gets an entry if it is different from the one in use, or
// does not load.
func (p *policies) load(ctx context.Context, next Policy, log *journal) (*policy.Engine, error) {
	old := p.engine.Load()
	engine, err := policy.Load(ctx, next.Files, next.Options)
	if err != nil {
		return nil, errors.Join(err, log.note(audit.Entry{Event: audit.Policy, Code: "failed", Error: err.Error(), PolicyRevision: old.Revision()}))
	}
	if engine.Revision() == old.Revision() {
		return engine, nil // it may have another timeout
	}
	return engine, log.note(audit.Entry{Event: audit.Policy, Code: codes.OK, PolicyRevision: engine.Revision()})
}
