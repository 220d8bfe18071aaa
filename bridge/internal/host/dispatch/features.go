package dispatch

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apps"
)

// features answers requests to use what servers offer in addition to tools: prompts, resources,
// completions, and methods that MCP does not have.
type features struct {
	*carrier
	pages  appPages
	skills skillSet
}

// use answers a request to use a prompt or a resource.
func (f *features) use(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	action, params := gate.Action(m.Method), m.Params
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
		if err := f.pages.inFull(ctx, p, &c); err != nil {
			return gate.Doc{}, err
		}
		if _, err := f.skills.skillOf(ctx, p, &c); err != nil {
			return gate.Doc{}, err
		}
	}
	res, err := f.carry(ctx, p, &c, params)
	if err != nil && (action == gate.GetPrompt || action == gate.ReadResource) {
		res, err = f.connect(ctx, p, &c, params, err)
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

// useMethod answers a request of a method that MCP does not have. A client without a
// session cannot be asked meanwhile: MCP has that for methods of its own alone.
func (f *features) useMethod(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	method, params := m.Method, m.Params
	c := p.Call(actions.OfMethod(method), method)
	client := p.Reached(ctx)
	client.Can.Hears = p.Channel != nil
	c.Client = client
	if err := message.CheckMethodParams(params); err != nil {
		c.Refused = err
	} else if !params.IsZero() {
		c.Meta, c.Args = params.Get("_meta"), mcp.Without(params, "_meta")
	}
	res, err := f.cfg.Do(ctx, c)
	switch {
	case err != nil && c.Refused != nil && !f.offersMethod(ctx, p, method):
		return gate.Doc{}, message.ErrNoMethod
	case err != nil:
		return gate.Doc{}, useError(ctx, p, &c, err)
	case res.IsError && !res.Doc.Get("_meta").Get(mcp.MetaError).IsZero(): // and not what the server has for a result
		return gate.Doc{}, message.ServerError(res.Doc)
	}
	return p.Complete(res.Doc), nil
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
