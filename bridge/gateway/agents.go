package gateway

import (
	"context"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/player"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/agents"
)

// Hook takes what the hook of an agent tells of who's session: of a call of one of the
// agent's own tools, which is decided on as [actions.AgentCall] and recorded; of its result; of
// what its user says; or of its end. It returns once the agent may go on.
func (g operator) Hook(ctx context.Context, who *gate.Principal, r agents.Request) agents.Answer {
	return g.agents.Hook(ctx, who, r)
}

// SetAgents puts other rules in the place of those of Config.Agents.
func (g operator) SetAgents(rules map[string]options.Agent) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.noteSetting("agents"); err != nil {
		return err
	}
	g.agents.Set(rules)
	return nil
}

func (g *Gateway) newAgents() {
	g.agents = agents.New(agents.Config{
		Life: g.life, Log: g.cfg.Log, Kept: g.session, Ended: g.endSession,
		Do:      func(ctx context.Context, c gate.Call) (gate.Result, error) { return g.gate.Do(ctx, c) },
		View:    g.sessions.View,
		Learn:   g.sessions.Learn,
		Teaches: g.teaches,
		Tracks:  func() bool { return g.gate.Parts().TrackValues },
	}, g.cfg.Agents)
}

// teaches returns the labels that a session gets from a result of a tool.
func (g *Gateway) teaches(t *gate.Tool) gate.Labels {
	if labels, ok := g.gate.Parts().Labeler.Labels(t); ok {
		return provenance.Teaches(labels)
	}
	return t.Teaches
}

// upstreams are where calls go: to the servers, back to the agent that has the tool itself, or to
// what was recorded.
type upstreams struct {
	*fleet.Fleet
	agents *agents.Agents
	player *player.Player // nil without a recording
}

var _ gate.Upstream = upstreams{}

// Lookup implements [gate.Upstream].
func (u upstreams) Lookup(ctx context.Context, action gate.Action, name string) (*gate.Tool, error) {
	if action == actions.AgentCall {
		return u.agents.Lookup(name)
	}
	return u.Fleet.Lookup(ctx, action, name)
}

// Invoke implements [gate.Upstream].
func (u upstreams) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, t, ok := p.Open()
	switch {
	case ok && t.Feature == gate.FeatureAgent:
		return u.agents.Invoke(ctx, p)
	case ok && u.player.Answers(t):
		return u.player.Answer(ctx, c, p)
	}
	return u.Fleet.Invoke(ctx, p)
}

// inAgents carries out a call of a client in the session of the agent that announced it.
func (g *Gateway) inAgents(ctx context.Context, c gate.Call) (gate.Result, error) {
	after, err := g.agents.Join(ctx, &c)
	if err != nil {
		c.Refused = &gate.Refusal{Step: step.Authorize, Reason: err.Error()}
	}
	defer after()
	return g.gate.Do(ctx, c)
}

// recallers are the sessions that learn what a client fetches beside calls.
func (g *Gateway) recallers(k gate.SessionKey) []gate.SessionKey {
	return slices.Concat([]gate.SessionKey{g.session(k)}, g.agents.Joined(g.session(k)))
}
