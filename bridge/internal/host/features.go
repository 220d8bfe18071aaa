package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/actions"
	"github.com/wasmgate/wasmgate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/meta"
	"github.com/wasmgate/wasmgate/internal/step"
)

// use answers a request to use a prompt or a resource.
func (h *Host) use(ctx context.Context, p client, action gate.Action, params gate.Doc) (gate.Doc, error) {
	name, err := checkUse(action, params)
	c := p.call(action, name)
	c.Meta, c.Client = params.Get("_meta"), p.reached(ctx)
	switch {
	case err != nil:
		c.Refused = err
	case action == gate.GetPrompt:
		c.Args = params.Get("arguments")
	case action == gate.Complete:
		c.Args = mcp.Without(params, "ref", "_meta")
	}
	res, err := h.carry(ctx, p, &c, params)
	if err != nil && (action == gate.GetPrompt || action == gate.ReadResource) {
		res, err = h.connect(ctx, p, &c, params, err)
	}
	if err != nil {
		return gate.Doc{}, p.useError(ctx, &c, err)
	}
	if res.InputRequired {
		return res.Doc, nil
	}
	if res.IsError {
		return gate.Doc{}, serverError(res.Doc)
	}
	doc := res.Doc
	if p.stateless && action == gate.ReadResource { // its principal's, and not for caches that others share
		doc = doc.With("ttlMs", timeToLive(doc)).With("cacheScope", []byte(`"private"`))
	}
	return p.complete(doc), nil
}

// timeToLive returns how long a server lets the answer to resources/read be kept, in
// milliseconds; 0 if it does not say. Whoever keeps it, keeps it for its principal alone.
func timeToLive(res gate.Doc) []byte {
	if ttl := res.Get("ttlMs"); ttl.Kind() == doc.Number {
		if n, ok := mcp.Integer(ttl.String()); ok && n > 0 {
			return ttl.Raw()
		}
	}
	return []byte("0")
}

// useError puts the error of a use into the words of MCP.
func (p client) useError(ctx context.Context, c *gate.Call, err error) error {
	p.noteScopes(err)
	r, refused := errors.AsType[*gate.Refusal](err)
	rpc, ours := errors.AsType[*mcp.Error](err)
	switch {
	case ours:
		return rpc
	case refused && r.Step == step.Parse:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + r.Reason}
	case refused && (r.Step == step.Lookup || r.Hidden):
		return p.unknownError(c)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &mcp.Error{Code: codeRefused, Message: Public(err), Data: mcp.MustJSON(map[string]any{meta.Refusal: refusalOf(c.ID, err)})}
}

// unknownError is the error of what does not exist, or is hidden.
func (p client) unknownError(c *gate.Call) error {
	if actions.IsMethod(c.Action) {
		return errNoMethod
	}
	what, code, data := "prompt", int64(mcp.CodeInvalidParams), []byte(nil)
	switch c.Action {
	case gate.ReadResource, gate.Subscribe:
		what, data = "resource", mcp.MustJSON(map[string]string{"uri": c.Name})
		if !p.stateless {
			code = codeNoResource
		}
	case gate.Complete:
		what = "prompt or template of resources"
	}
	return &mcp.Error{Code: code, Message: fmt.Sprintf("unknown %s %.200q", what, c.Name), Data: data}
}
