package app

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/agents"
	"github.com/wasmgate/wasmgate/internal/hook"
)

// Hook takes what the hook of an agent tells.
func (a *App) Hook(ctx context.Context, r hook.Request) (agents.Answer, error) {
	as := ""
	for _, one := range a.config.Load().cfg.Agents {
		if one.ID == r.Agent {
			as = one.As
		}
	}
	who, err := offered(a.cfg, as, nil)
	if err != nil {
		return agents.Answer{}, err
	}
	event, _ := gate.ParseDoc(r.Event) // what is none denies
	return a.gateway.Operator().Hook(ctx, who, agents.Request{
		Agent: r.Agent, Event: event, Headless: r.Headless, Observe: r.Observe, Hold: time.Duration(r.HoldMS) * time.Millisecond,
	}), nil
}
