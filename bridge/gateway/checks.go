package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/clean"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/approval"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy"
)

// checks are how calls are checked, made of a [Config]. They are never changed: others take
// their place in one swap of the gate's parts, together with the name of the configuration.
type checks struct {
	clean   *clean.Texts
	secrets *clean.Secrets
	hide    func(name, text string) string // takes secrets out of the audit log
	inputs  map[string]*InputRules         // by server
	prompt  bool                           // whether the client's word for the prompt is taken
	name    string                         // of the configuration: its snapshot
}

func newChecks(c *Config, seal []byte) (*checks, error) {
	texts, err := clean.NewTexts(c.Sanitize)
	if err != nil {
		return nil, err
	}
	secrets, hide, err := clean.NewSecrets(c.Sanitize.Secrets, seal)
	if err != nil {
		return nil, err
	}
	return &checks{clean: texts, secrets: secrets, hide: hide, inputs: c.Inputs, prompt: c.TrustPrompt, name: c.Snapshot}, nil
}

// of returns the checks with what is said of one server.
func (c checks) of(s Server) *checks {
	c.clean, c.inputs = c.clean.With(s.Server, s.Sanitize), maps.Clone(c.inputs)
	delete(c.inputs, s.Server)
	if s.Input != nil {
		if c.inputs == nil {
			c.inputs = make(map[string]*InputRules)
		}
		c.inputs[s.Server] = s.Input
	}
	return &c
}

// in puts the checks into the parts of a gate.
func (c *checks) in(p *gate.Parts) {
	p.Sanitizer, p.ContentChecker, p.Secrets, p.Returned = c.clean, c.clean, c.secrets, c.secrets.Returned()
	p.Inputs, p.TrustPrompt, p.Snapshot = c.inputMode, c.prompt, c.name
}

// inputMode says how arguments are held against the input schema of a tool.
func (c *checks) inputMode(t *gate.Tool) gate.InputMode {
	rules := c.inputs[t.Name.Server]
	if rules == nil {
		return gate.CoerceInput
	}
	for _, r := range rules.Tools {
		if match.Pattern(r.Pattern).Matches(t.Local) {
			return r.Mode
		}
	}
	return rules.Mode
}

// checking has the checks in use, for what outlives a change of them: the lists of servers,
// and the audit log.
type checking struct{ now atomic.Pointer[checks] }

var (
	_ gate.Sanitizer      = (*checking)(nil)
	_ gate.ContentChecker = (*checking)(nil)
)

// Sanitize implements [gate.Sanitizer].
func (c *checking) Sanitize(t gate.Text) (string, []gate.Finding) {
	return c.now.Load().clean.Sanitize(t)
}

// Check implements [gate.ContentChecker].
func (c *checking) Check(of gate.Content) gate.ContentVerdict { return c.now.Load().clean.Check(of) }

func (c *checking) hide(name, text string) string { return c.now.Load().hide(name, text) }

// check puts other checks in place, and what change says. The caller holds setting.
func (g *Gateway) check(next *checks, change func(*gate.Parts)) error {
	parts := g.gate.Parts()
	next.in(&parts)
	change(&parts)
	if err := g.gate.Swap(parts); err != nil {
		return err
	}
	g.checking.now.Store(next)
	return nil
}

// Reconfigure puts what next says of how calls are checked in the place of what was said
// before, all at once: Name, Version, Description, Sanitize, Inputs, TrustPrompt, Approvals (but what New sets, and
// whether there are any), Pins and Jobs (if there are any: not where they are kept), the TTL of
// Sessions, Limits but those of servers, Origins, Hosts and Snapshot, by which
// each record names what decided it; and p, if it is not nil, in the place of Policy, of which
// clients are told. Calls under way end with what they began. What else next says counts for
// New alone, or has a method of its own. The audit log has it before it is done; on an error
// all stays as it was, but for one of the tools of jobs, which then are what they were, alone.
func (g *Gateway) Reconfigure(ctx context.Context, next Config, p *Policy) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if (next.Approvals == nil) != (g.cfg.Approvals == nil) {
		return errors.New("gateway: whether people are asked is said when the gateway is built")
	}
	now, err := newChecks(&next, g.cfg.Seal)
	if err != nil {
		return err
	}
	engine := g.Policy()
	if p != nil {
		if engine, err = g.loadPolicy(ctx, *p); err != nil {
			return err
		}
	}
	if err := g.noteSetting("how calls are checked"); err != nil {
		return err
	}
	pinned, err := g.setPins(next.Pins)
	if err != nil {
		return err
	}
	before, tasks := g.checking.now.Load(), g.host.OffersTasks()
	if err := g.check(now, func(parts *gate.Parts) {
		g.decide(parts, engine)
		parts.Approver, parts.Pins = g.approver(next.Approvals), g.gatePins()
	}); err != nil {
		return err
	}
	g.use(ctx, engine)
	if pinned {
		g.fleet.Refresh()
	}
	if next.Approvals != nil {
		g.asking.Change(*next.Approvals)
	}
	g.sessions.SetTTL(next.Sessions.TTL)
	g.setLimits(next.Limits)
	g.host.Change(g.terms(&next))
	if !now.clean.Same(before.clean) {
		if err := g.fleet.Relist(); err != nil {
			g.cfg.Log.Warn("lists are as they were", "error", err)
		}
	}
	if p != nil || tasks != g.host.OffersTasks() { // else nothing of it decides what is offered
		g.host.Changed()
	}
	if err := g.setJobs(next.Jobs); err != nil {
		return fmt.Errorf("jobs: their tools are as they were: %w", err)
	}
	return nil
}

// terms are what the host holds clients to.
func (g *Gateway) terms(c *Config) host.Terms {
	return host.Terms{
		Name: c.Name, Version: c.Version, Description: c.Description, MaxBody: c.Limits.Body, Origins: c.Origins, Hosts: c.Hosts,
		Asks: g.cfg.Approvals != nil && g.asking.Uses(approval.Client), NoTasks: c.Jobs == nil || c.Jobs.NoTasks,
	}
}

// decide has a policy decide.
func (g *Gateway) decide(parts *gate.Parts, by *policy.Engine) {
	parts.Authorizer, parts.Labeler = by, by
	parts.TrackValues, parts.TrackOrigins = g.tracksValues(by), g.tracksOrigins(by)
}

// loadPolicy loads a policy. The audit log has one that is another than that in use, and why
// one does not load.
func (g *Gateway) loadPolicy(ctx context.Context, p Policy) (*policy.Engine, error) {
	old := g.engine.Load()
	engine, err := policy.Load(ctx, p.Files, p.Options)
	if err != nil {
		return nil, errors.Join(err, g.note(audit.Entry{Event: audit.Policy, Code: "failed", Error: err.Error(), PolicyRevision: old.Revision()}))
	}
	if engine.Revision() == old.Revision() {
		return engine, nil // it may have another timeout
	}
	return engine, g.note(audit.Entry{Event: audit.Policy, Code: gate.CodeOK, PolicyRevision: engine.Revision()})
}
