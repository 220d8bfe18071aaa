package app

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/hook"
)

// agentRules puts the agents of a configuration into the words of a gateway.
func agentRules(c *config.Config) map[string]gateway.AgentRules {
	rules := make(map[string]gateway.AgentRules)
	for _, a := range c.Agents {
		rules[a.ID] = gateway.AgentRules{MCP: a.MCP, RequireHook: a.RequireHook, TrustHeadless: a.TrustHeadless}
	}
	return rules
}

// Hook takes what the hook of an agent tells.
func (a *App) Hook(ctx context.Context, r hook.Request) (gateway.HookAnswer, error) {
	as := ""
	for _, one := range a.config.Load().cfg.Agents {
		if one.ID == r.Agent {
			as = one.As
		}
	}
	who, err := offered(a.cfg, as, nil)
	if err != nil {
		return gateway.HookAnswer{}, err
	}
	event, _ := gate.ParseDoc(r.Event) // what is none denies
	return a.gateway.Hook(ctx, who, gateway.HookRequest{
		Agent: r.Agent, Event: event, Headless: r.Headless, Observe: r.Observe, Hold: time.Duration(r.HoldMS) * time.Millisecond,
	}), nil
}
