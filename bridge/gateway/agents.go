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
func (g Operator) Hook(ctx context.Context, who *gate.Principal, r options.Hook) options.HookAnswer {
	return g.agents.Hook(ctx, who, r)
}

// SetAgents puts other rules in the place of those of Config.Agents.
func (g Operator) SetAgents(rules map[string]options.Agent) error {
	g.setting.Lock()
	defer g.setting.Unlock()
	if err := g.journal.noteSetting("agents"); err != nil {
		return err
	}
	g.agents.Set(rules)
	return nil
}

func (g *Gateway) newAgents() {
	g.agents = agents.New(agents.Config{
		Life: g.life, Log: g.cfg.Log, Kept: g.sessions.key, Ended: g.endSession,
		Do:    func(ctx context.Context, c gate.Call) (gate.Result, error) { return g.gate.Do(ctx, c) },
		View:  g.sessions.View,
		Learn: g.sessions.Learn,
		Teaches: func(t *gate.Tool) gate.Labels {
			if labels, ok := g.gate.Parts().Labeler.Labels(t); ok {
				return provenance.Teaches(labels)
			}
			return t.Teaches
		},
		Tracks: func() bool { return g.gate.Parts().TrackValues },
	}, g.cfg.Agents)
}

// endSession drops the state of a session whose client is gone.
func (g *Gateway) endSession(k gate.SessionKey) {
	g.agents.Left(g.sessions.key(k))
	g.fleet.Sessions.End(k)
	g.machine.endSession(k)
}
