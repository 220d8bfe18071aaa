package dispatch

import (
	"bytes"
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// lists answers tools/list and its like.
type lists struct {
	*backend
	pages appPages
}

// list answers tools/list and its like in one page: clients that do not page see
// all.
func (l *lists) list(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	method := m.Method
	f := message.Listings[method].Feature
	tools, err := l.listed(ctx, p, f)
	if err == nil {
		tools, err = l.pages.forApps(ctx, p, f, tools)
	}
	if err == nil && l.cfg.Shown != nil {
		err = l.cfg.Shown(ctx, p.Call("", ""), tools)
	}
	if err != nil {
		l.cfg.Log.Error("listing failed", "method", method, "principal", p.Who.ID, "error", err)
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "the " + message.Listings[method].Member + " cannot be listed"}
	}
	out := []byte(`{"` + message.Listings[method].Member + `":[`)
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, l.definition(p, t)...)
	}
	out = append(out, ']')
	if f == gate.FeatureSkill {
		res, err := gate.ParseDoc(append(out, '}'))
		return l.cached(p, f, res), err
	}
	if p.Stateless { // a list is its principal's, and not for caches that others share
		out = fmt.Appendf(out, `,"ttlMs":%d,"cacheScope":"private"`, l.fresh(f).Milliseconds())
	}
	res, err := gate.ParseDoc(append(out, '}'))
	if err != nil {
		return gate.Doc{}, err
	}
	return p.Complete(res), nil
}

// definition is how a tool is listed. Every tool can be called as a task, for it is
// the host that keeps it; what a server says of that itself stays as it is. Without a
// word of it clients must not (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level
// Negotiation").
func (l *lists) definition(p sessions.Client, t *gate.Tool) []byte {
	raw := t.Definition.Raw()
	if !l.OffersTasks() || p.Stateless || t.Feature != gate.FeatureTool || t.Relay || !t.Definition.Get("execution").IsZero() {
		return raw
	}
	return append(bytes.Clone(raw[:len(raw)-1]), `,"execution":{"taskSupport":"optional"}}`...)
}
