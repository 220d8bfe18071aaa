package host

import (
	"context"
	"errors"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Methods that MCP does not have come and go with the servers that have them.

// isMethod reports whether MCP does not have the method of a request.
func isMethod(method string) bool {
	return !slices.Contains(served, method) && gate.MethodAction(method).IsMethod()
}

// method returns the method of a server that a request names; nil if no server has it.
func (h *Host) method(ctx context.Context, method string) *gate.Tool {
	if h.cfg.Lookup == nil || h.cfg.Features == nil || !isMethod(method) {
		return nil
	}
	t, err := h.cfg.Lookup(ctx, gate.MethodAction(method), method)
	if err != nil || t.Feature != gate.FeatureMethod {
		return nil
	}
	return t
}

// offersMethod reports whether a client may use the method that its request names. For all
// others it does not exist.
func (h *Host) offersMethod(ctx context.Context, p peerInfo, method string) bool {
	t := h.method(ctx, method)
	if t == nil {
		return false
	}
	offered, err := h.listed(ctx, p, gate.FeatureMethod)
	return err == nil && slices.ContainsFunc(offered, func(one *gate.Tool) bool { return one.Name == t.Name })
}

// actionOf returns the action of a request by which a client uses what a server offers;
// false of any other request.
func actionOf(method string) (gate.Action, bool) {
	if isMethod(method) {
		return gate.MethodAction(method), true
	}
	return gate.Action(method), slices.Contains(acting, gate.Action(method))
}

// checkMethodParams checks the shape of the parameters of a method that MCP does not have.
func checkMethodParams(params gate.Doc) error {
	if !params.IsZero() && params.Kind() != gate.Object {
		return errors.New("params is no object")
	}
	if meta := params.Get("_meta"); !meta.IsZero() && meta.Kind() != gate.Object {
		return errors.New("_meta is no object")
	}
	return nil
}

var errNoMethod = &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}

// useMethod answers a request of a method that MCP does not have. A client without a
// session cannot be asked meanwhile: MCP has that for methods of its own alone.
func (h *Host) useMethod(ctx context.Context, p peerInfo, method string, params gate.Doc) (gate.Doc, error) {
	c := p.call(gate.MethodAction(method), method)
	p.hears(&c)
	if err := checkMethodParams(params); err != nil {
		c.Malformed = err
	} else if !params.IsZero() {
		c.Meta, c.Args = params.Get("_meta"), mcp.Without(params, "_meta")
	}
	if p.asks() {
		c.Peer = sessionPeer{p.capabilities, ctx, p.wire}
	}
	res, err := h.cfg.Do(ctx, c)
	switch {
	case err != nil && c.Malformed != nil && !h.offersMethod(ctx, p, method):
		return gate.Doc{}, errNoMethod
	case err != nil:
		return gate.Doc{}, h.unused(ctx, p, &c, err)
	case res.IsError && !res.Doc.Get("_meta").Get(mcp.MetaError).IsZero(): // and not what the server has for a result
		return gate.Doc{}, serverError(res.Doc)
	}
	return p.complete(res.Doc), nil
}
