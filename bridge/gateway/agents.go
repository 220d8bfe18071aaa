package gateway

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
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
