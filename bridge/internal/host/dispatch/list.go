package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// list answers tools/list and its like in one page: clients that do not page see
// all.
func (d *Dispatcher) list(ctx context.Context, p sessions.Client, method string) (gate.Doc, error) {
	f := message.Listings[method].Feature
	tools, err := d.listed(ctx, p, f)
	if err == nil {
		tools, err = d.forApps(ctx, p, f, tools)
	}
	if err == nil && d.cfg.Shown != nil {
		err = d.cfg.Shown(ctx, p.Call("", ""), tools)
	}
	if err != nil {
		d.cfg.Log.Error("listing failed", "method", method, "principal", p.Who.ID, "error", err)
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "the " + message.Listings[method].Member + " cannot be listed"}
	}
	out := []byte(`{"` + message.Listings[method].Member + `":[`)
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, d.definition(p, t)...)
	}
	out = append(out, ']')
	if f == gate.FeatureSkill {
		res, err := gate.ParseDoc(append(out, '}'))
		return d.cached(p, f, res), err
	}
	if p.Stateless { // a list is its principal's, and not for caches that others share
		out = fmt.Appendf(out, `,"ttlMs":%d,"cacheScope":"private"`, d.fresh(f).Milliseconds())
	}
	res, err := gate.ParseDoc(append(out, '}'))
	if err != nil {
		return gate.Doc{}, err
	}
	return p.Complete(res), nil
}

func (d *Dispatcher) fresh(f gate.Feature) time.Duration {
	if d.cfg.Fresh == nil {
		return 0
	}
	return d.cfg.Fresh(f)
}

// listed returns what a client is offered of a feature.
func (d *Dispatcher) listed(ctx context.Context, p sessions.Client, f gate.Feature) ([]*gate.Tool, error) {
	list := d.cfg.Tools
	if f != gate.FeatureTool {
		list = func(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) {
			return d.cfg.Features(ctx, who, f)
		}
	}
	all, err := list(ctx, p.Who)
	return within(p.Groups, all), err
}

// within returns what is in one of some groups; without groups that is all.
func within(groups gate.Groups, all []*gate.Tool) []*gate.Tool {
	if len(groups) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *gate.Tool) bool { return !groups.Has(t) })
}

// brief returns those of the tools that a client finds the others by, if that is all it
// is to be shown, and those with a page: hosts show the pages of listed tools only.
func (d *Dispatcher) brief(tools []*gate.Tool, pages pages) []*gate.Tool {
	if d.cfg.Brief == nil || !d.cfg.Brief() {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t *gate.Tool) bool { return !t.Relay && pages.of(t) == nil })
}

// definition is how a tool is listed. Every tool can be called as a task, for it is
// the host that keeps it; what a server says of that itself stays as it is. Without a
// word of it clients must not (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level
// Negotiation").
func (d *Dispatcher) definition(p sessions.Client, t *gate.Tool) []byte {
	raw := t.Definition.Raw()
	if !d.OffersTasks() || p.Stateless || t.Feature != gate.FeatureTool || t.Relay || !t.Definition.Get("execution").IsZero() {
		return raw
	}
	return append(bytes.Clone(raw[:len(raw)-1]), `,"execution":{"taskSupport":"optional"}}`...)
}

// CheckParamHeaders returns how the headers differ from the arguments of a call. Only a client that
// is offered a tool learns what the tool wants in headers.
func (d *Dispatcher) CheckParamHeaders(r *http.Request, p sessions.Client, name string, args gate.Doc) error {
	if d.cfg.Lookup == nil {
		return nil
	}
	t, err := d.cfg.Lookup(r.Context(), gate.CallTool, name)
	if err != nil || mcp.CheckParamHeaders(mcp.OfferedHeaders(t), args, r.Header) == nil {
		return nil // the gate refuses an unknown name
	}
	offered, err := d.listed(r.Context(), p, gate.FeatureTool)
	if err != nil {
		return errors.New("the headers cannot be checked, because the gateway cannot list your tools now; try again later")
	}
	for _, its := range offered {
		if its.Name == t.Name && its.Local == t.Local {
			return mcp.CheckParamHeaders(mcp.OfferedHeaders(its), args, r.Header)
		}
	}
	return nil
}
