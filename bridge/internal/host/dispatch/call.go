package dispatch

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

var noArguments = gate.MustDoc("{}")

// tools answers calls of tools.
type tools struct {
	*carrier
	pages appPages
	tasks *tasks
}

// callTool answers tools/call.
func (t *tools) callTool(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	params := m.Params
	c := p.Call(gate.CallTool, params.Get("name").Text())
	c.Args, c.Meta = message.Object(params, "arguments"), message.Object(params, "_meta")
	if c.Args.IsZero() { // equal, also for what is bound to the call
		c.Args = noArguments
	}
	if err := t.pages.inFull(ctx, p, &c); err != nil {
		return gate.Doc{}, err
	}
	client, asks := p.Reached(ctx), t.terms.Load().Asks
	client.Can.Hears = p.Channel != nil
	client.Can.ByAnswer = asks && p.Stateless && elicit.Forms(c.Meta.Get(mcp.MetaCapabilities))
	client.Can.Approves = asks && p.Asks() && elicit.Forms(p.Capabilities)
	c.Client = client
	if task := params.Get("task"); !task.IsZero() && t.OffersTasks() && !p.Stateless {
		return t.tasks.startTask(ctx, p, c, task)
	}
	res, err := t.carry(ctx, p, &c, params)
	if err != nil {
		res, err = t.connect(ctx, p, &c, params, err)
	}
	if err != nil {
		return t.failed(ctx, p, c, err)
	}
	if p.Stateless && res.IsError && message.LacksCapability(res.Doc) {
		return gate.Doc{}, message.ServerError(res.Doc)
	}
	return p.Answer(res), nil
}
