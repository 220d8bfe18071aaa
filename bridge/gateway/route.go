package gateway

import (
	"context"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Do carries out one call through the gate. After [Gateway.Drain] it returns [ErrDraining] instead.
func (g *Gateway) Do(ctx context.Context, c gate.Call) (gate.Result, error) {
	if !g.calls.Begin() {
		return gate.Result{}, ErrDraining
	}
	defer g.calls.End()
	return g.do(ctx, c)
}

// do carries out a call of a client. The call ends if the caller's credential is revoked. Its labels are those of
// the client's session, and of the agent's session in which the agent announced it.
func (g *Gateway) do(ctx context.Context, c gate.Call) (gate.Result, error) {
	if b := c.Meta.Get("baggage"); !b.IsZero() && (g.cfg.Baggage == nil || !g.cfg.Baggage()) {
		c.Meta = mcp.Without(c.Meta, "baggage")
	}
	if g.cfg.Trace != nil {
		c.Trace = g.cfg.Trace(&c)
	}
	ctx, done := g.held.begin(ctx, &c)
	defer done()
	c = g.sessions.place(c)
	after, err := g.agents.Join(ctx, &c)
	if err != nil {
		c.Refused = &gate.Refusal{Step: step.Authorize, Reason: err.Error()}
	}
	defer after()
	return g.gate.Do(ctx, c)
}

// recall teaches the session of a client, and those of its agents, the labels of a result that the client fetches
// without a call.
func (g *Gateway) recall(ctx context.Context, c gate.Call, kept gate.Result) error {
	c = g.sessions.place(c)
	for _, c.Session = range slices.Concat([]gate.SessionKey{c.Session}, g.agents.Joined(c.Session)) {
		if err := g.gate.Recall(ctx, c, kept); err != nil {
			return err
		}
	}
	return nil
}
