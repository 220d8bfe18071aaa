package host

import (
	"context"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/actions"
)

// Methods that MCP does not have come and go with the servers that have them.

// method returns the method of a server that a request names; nil if no server has it.
func (h *Host) method(ctx context.Context, method string) *gate.Tool {
	if h.cfg.Lookup == nil || h.cfg.Features == nil || !isMethod(method) {
		return nil
	}
	t, err := h.cfg.Lookup(ctx, actions.OfMethod(method), method)
	if err != nil || t.Feature != gate.FeatureMethod {
		return nil
	}
	return t
}

// offersMethod reports whether a client may use the method that its request names. For all
// others it does not exist.
func (h *Host) offersMethod(ctx context.Context, p client, method string) bool {
	t := h.method(ctx, method)
	if t == nil {
		return false
	}
	offered, err := h.listed(ctx, p, gate.FeatureMethod)
	return err == nil && slices.ContainsFunc(offered, func(one *gate.Tool) bool { return one.Name == t.Name })
}

// useMethod answers a request of a method that MCP does not have. A client without a
// session cannot be asked meanwhile: MCP has that for methods of its own alone.
func (h *Host) useMethod(ctx context.Context, p client, method string, params gate.Doc) (gate.Doc, error) {
	c := p.call(actions.OfMethod(method), method)
	client := p.reached(ctx)
	client.reach.Hears = p.channel != nil
	c.Client = client
	if err := checkMethodParams(params); err != nil {
		c.Refused = err
	} else if !params.IsZero() {
		c.Meta, c.Args = params.Get("_meta"), mcp.Without(params, "_meta")
	}
	res, err := h.cfg.Do(ctx, c)
	switch {
	case err != nil && c.Refused != nil && !h.offersMethod(ctx, p, method):
		return gate.Doc{}, errNoMethod
	case err != nil:
		return gate.Doc{}, p.useError(ctx, &c, err)
	case res.IsError && !res.Doc.Get("_meta").Get(mcp.MetaError).IsZero(): // and not what the server has for a result
		return gate.Doc{}, serverError(res.Doc)
	}
	return p.complete(res.Doc), nil
}
