package host

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// list answers tools/list and its like in one page: clients that do not page see
// all.
func (h *Host) list(ctx context.Context, p client, method string) (gate.Doc, error) {
	tools, err := h.listed(ctx, p, listings[method].feature)
	tools = h.brief(tools)
	if err == nil && h.cfg.Shown != nil {
		err = h.cfg.Shown(ctx, p.who, p.key(), tools)
	}
	if err != nil {
		h.cfg.Log.Error("listing failed", "method", method, "principal", p.who.ID, "error", err)
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "the " + listings[method].member + " cannot be listed"}
	}
	out := []byte(`{"` + listings[method].member + `":[`)
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, h.definition(p, t)...)
	}
	out = append(out, ']')
	if p.stateless { // a list is its principal's, and not for caches that others share
		out = fmt.Appendf(out, `,"ttlMs":%d,"cacheScope":"private"`, h.fresh(listings[method].feature).Milliseconds())
	}
	res, err := gate.ParseDoc(append(out, '}'))
	if err != nil {
		return gate.Doc{}, err
	}
	return p.complete(res), nil
}

func (h *Host) fresh(f gate.Feature) time.Duration {
	if h.cfg.Fresh == nil {
		return 0
	}
	return h.cfg.Fresh(f)
}

// listed returns what a client is offered of a feature.
func (h *Host) listed(ctx context.Context, p client, f gate.Feature) ([]*gate.Tool, error) {
	list := h.cfg.Tools
	if f != gate.FeatureTool {
		list = func(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) {
			return h.cfg.Features(ctx, who, f)
		}
	}
	all, err := list(ctx, p.who)
	return within(p.groups, all), err
}

// within returns what is in one of some groups; without groups that is all.
func within(groups gate.Groups, all []*gate.Tool) []*gate.Tool {
	if len(groups) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *gate.Tool) bool { return !groups.Has(t) })
}

// brief returns those of the tools that a client finds the others by, if that is all it
// is to be shown.
func (h *Host) brief(tools []*gate.Tool) []*gate.Tool {
	if h.cfg.Brief == nil || !h.cfg.Brief() {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t *gate.Tool) bool { return t.Feature == gate.FeatureTool && !t.Relay })
}

// definition is how a tool is listed. Every tool can be called as a task, for it is
// the host that keeps it; what a server says of that itself stays as it is. Without a
// word of it clients must not (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level
// Negotiation").
func (h *Host) definition(p client, t *gate.Tool) []byte {
	raw := t.Definition.Raw()
	if !h.OffersTasks() || p.stateless || t.Feature != gate.FeatureTool || t.Relay || !t.Definition.Get("execution").IsZero() {
		return raw
	}
	return append(bytes.Clone(raw[:len(raw)-1]), `,"execution":{"taskSupport":"optional"}}`...)
}
