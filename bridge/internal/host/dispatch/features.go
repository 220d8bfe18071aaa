package dispatch

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apps"
)

// use answers a request to use a prompt or a resource.
func (d *Dispatcher) use(ctx context.Context, p sessions.Client, action gate.Action, params gate.Doc) (gate.Doc, error) {
	name, err := message.CheckUse(action, params)
	c := p.Call(action, name)
	c.Meta, c.Client = message.Object(params, "_meta"), p.Reached(ctx)
	switch {
	case err != nil:
		c.Refused = err
	case action == gate.GetPrompt:
		c.Args = message.Object(params, "arguments")
	case action == gate.Complete:
		c.Args = mcp.Without(params, "ref", "_meta")
	}
	asked := c.Name
	if action == gate.ReadResource {
		if err := d.inFull(ctx, p, &c); err != nil {
			return gate.Doc{}, err
		}
		if _, err := d.skillOf(ctx, p, &c); err != nil {
			return gate.Doc{}, err
		}
	}
	res, err := d.carry(ctx, p, &c, params)
	if err != nil && (action == gate.GetPrompt || action == gate.ReadResource) {
		res, err = d.connect(ctx, p, &c, params, err)
	}
	if err != nil {
		return gate.Doc{}, useError(ctx, p, &c, err)
	}
	if res.InputRequired {
		return res.Doc, nil
	}
	if res.IsError {
		return gate.Doc{}, message.ServerError(res.Doc)
	}
	doc := res.Doc
	if c.Name != asked { // pages and skills name their resources as their own server does
		doc = apps.Answer(doc.At("/contents/0"), asked)
	}
	if p.Stateless && action == gate.ReadResource { // its principal's, and not for caches that others share
		doc = doc.With("ttlMs", timeToLive(doc)).With("cacheScope", []byte(`"private"`))
	}
	return p.Complete(doc), nil
}

// timeToLive returns how long a server lets the answer to resources/read be kept, in milliseconds;
// 0 if it does not say. A cache keeps the answer only for its principal.
func timeToLive(res gate.Doc) []byte {
	if ttl := res.Get("ttlMs"); ttl.Kind() == doc.Number {
		if n, ok := mcp.Integer(ttl.String()); ok && n > 0 {
			return ttl.Raw()
		}
	}
	return []byte("0")
}
