package dispatch

import (
	"context"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
)

// Methods that MCP does not have come and go with the servers that have them.

// method returns the method of a server that a request names; nil if no server has it.
func (d *Dispatcher) method(ctx context.Context, method string) *gate.Tool {
	if d.cfg.Lookup == nil || d.cfg.Features == nil || !message.IsMethod(method) {
		return nil
	}
	t, err := d.cfg.Lookup(ctx, actions.OfMethod(method), method)
	if err != nil || t.Feature != gate.FeatureMethod {
		return nil
	}
	return t
}

// offersMethod reports whether a client may use the method that its request names. For all
// others it does not exist.
func (d *Dispatcher) offersMethod(ctx context.Context, p sessions.Client, method string) bool {
	t := d.method(ctx, method)
	if t == nil {
		return false
	}
	offered, err := d.listed(ctx, p, gate.FeatureMethod)
	return err == nil && slices.ContainsFunc(offered, func(one *gate.Tool) bool { return one.Name == t.Name })
}

// useMethod answers a request of a method that MCP does not have. A client without a
// session cannot be asked meanwhile: MCP has that for methods of its own alone.
func (d *Dispatcher) useMethod(ctx context.Context, p sessions.Client, method string, params gate.Doc) (gate.Doc, error) {
	c := p.Call(actions.OfMethod(method), method)
	client := p.Reached(ctx)
	client.Can.Hears = p.Channel != nil
	c.Client = client
	if err := message.CheckMethodParams(params); err != nil {
		c.Refused = err
	} else if !params.IsZero() {
		c.Meta, c.Args = params.Get("_meta"), mcp.Without(params, "_meta")
	}
	res, err := d.cfg.Do(ctx, c)
	switch {
	case err != nil && c.Refused != nil && !d.offersMethod(ctx, p, method):
		return gate.Doc{}, message.ErrNoMethod
	case err != nil:
		return gate.Doc{}, useError(ctx, p, &c, err)
	case res.IsError && !res.Doc.Get("_meta").Get(mcp.MetaError).IsZero(): // and not what the server has for a result
		return gate.Doc{}, message.ServerError(res.Doc)
	}
	return p.Complete(res.Doc), nil
}
