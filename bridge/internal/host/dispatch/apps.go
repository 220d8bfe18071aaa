package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/lookalike"
)

// An aggregator is one server to its clients, so that the border between the apps of two
// servers is here: a page has its server in its URI, and what it calls by a name of its own
// server's leads there and nowhere else.

// appPages knows what clients that show pages of apps see of them.
type appPages struct{ *backend }

// shows reports whether a client is offered pages.
func (a appPages) shows(p sessions.Client) bool {
	return p.Renders && a.cfg.AppTools != nil && a.cfg.OpenApps != nil && a.cfg.Features != nil
}

// pages are those that a client may read, by the URIs under which it knows them.
type pages map[string]*gate.Tool

func (a appPages) pages(ctx context.Context, p sessions.Client) (pages, error) {
	list, err := a.listed(ctx, p, gate.FeaturePage)
	all := make(pages, len(list))
	for _, t := range list {
		all[t.Offered] = t
	}
	return all, err
}

// of returns the page that shows what a tool returns; nil if the client may not read it.
func (all pages) of(t *gate.Tool) *gate.Tool {
	if t.App == nil || t.App.Page == nil {
		return nil
	}
	return all[t.App.Page.Offered]
}

// servers are those with a page.
func (all pages) servers() map[string]bool {
	of := make(map[string]bool)
	for _, t := range all {
		of[t.Name.Server] = true
	}
	return of
}

// forApps returns a listing as its client sees it. A client that shows pages gets them, tools
// with what they say of theirs, and tools that are only for apps; any other gets nothing that
// is of a page.
func (a appPages) forApps(ctx context.Context, p sessions.Client, f gate.Feature, all []*gate.Tool) ([]*gate.Tool, error) {
	switch {
	case f == gate.FeatureTool && !a.shows(p):
		return a.brief(all, nil), nil
	case f == gate.FeatureTool:
		return a.appTools(ctx, p, all)
	case !a.shows(p):
		return slices.DeleteFunc(slices.Clone(all), func(t *gate.Tool) bool { return strings.HasPrefix(t.Local, apps.Scheme) }), nil
	case f == gate.FeatureResource:
		more, err := a.listed(ctx, p, gate.FeaturePage)
		unread := func(t *gate.Tool) bool { return strings.HasPrefix(t.Local, apps.Scheme) && apps.IsPage(t.MIME) }
		return slices.Concat(slices.DeleteFunc(slices.Clone(all), unread), more), err
	}
	return all, nil
}

// appTools returns tools for a client that shows pages.
func (a appPages) appTools(ctx context.Context, p sessions.Client, all []*gate.Tool) ([]*gate.Tool, error) {
	pages, err := a.pages(ctx, p)
	if err != nil {
		return nil, err
	}
	only, err := a.cfg.AppTools(ctx, p.Who)
	if err != nil {
		return nil, err
	}
	servers := pages.servers()
	called := make(map[string]int) // how many tools of apps have an own name
	taken := new(lookalike.Index)
	for _, t := range all {
		taken.Add(t.Offered)
	}
	forApp := func(t *gate.Tool) bool { return t.App != nil && t.App.Calls && servers[t.Name.Server] }
	for _, t := range slices.Concat(all, only) {
		if forApp(t) {
			called[t.Local]++
		}
	}
	var list, own []*gate.Tool
	for _, t := range a.brief(all, pages) {
		page := pages.of(t)
		if page != nil {
			list = append(list, withUI(t, t.Offered, map[string]any{"resourceUri": page.Offered, "visibility": visibility(t)}))
		} else {
			list = append(list, t)
		}
	}
	for _, t := range slices.Concat(all, within(p.Groups, only)) {
		if !forApp(t) {
			continue
		}
		ui := map[string]any{"visibility": []string{"app"}}
		if page := pages.of(t); page != nil { // hosts may open an app by its tool's own name
			ui["resourceUri"] = page.Offered
		}
		_, _, alike := taken.Confusable(t.Local)
		if called[t.Local] == 1 && !alike && !strings.Contains(t.Local, "__") {
			own = append(own, withUI(t, t.Local, ui))
		} else if t.AppOnly {
			own = append(own, withUI(t, t.Offered, ui))
		}
	}
	return append(list, own...), nil
}

// visibility is that of a tool for models.
func visibility(t *gate.Tool) []string {
	if t.App.Calls {
		return []string{"model", "app"}
	}
	return []string{"model"}
}

// withUI returns a tool as it is listed to a client that shows pages.
func withUI(t *gate.Tool, name string, ui map[string]any) *gate.Tool {
	meta := t.Definition.Get("_meta").With("ui", mcp.MustJSON(ui))
	if uri, ok := ui["resourceUri"]; ok {
		meta = meta.With(apps.LegacyURI, mcp.MustJSON(uri))
	}
	its := *t
	its.Definition = t.Definition.With("name", mcp.MustJSON(name)).With("_meta", meta.Raw())
	return &its
}

// inFull has a call of a client that shows pages name its tool or page in full. A page names
// both as its own server does; then the session tells which server that is: one with an app
// that is open, or else the only one that has the name.
func (a appPages) inFull(ctx context.Context, p sessions.Client, c *gate.Call) error {
	if !a.shows(p) || a.cfg.Lookup == nil || c.Refused != nil {
		return nil
	}
	named, err := a.cfg.Lookup(ctx, c.Action, c.Name)
	if err == nil && (named.Name.String() == c.Name || named.Page != nil && named.Offered == c.Name) {
		return nil
	}
	if c.Action == gate.ReadResource && !apps.IsURI(c.Name) {
		return nil
	}
	found, err := a.owning(ctx, p, c)
	if err != nil || len(found) == 0 {
		return err
	}
	open, err := a.cfg.OpenApps(ctx, c.Session)
	if err != nil {
		return err
	}
	opened := slices.DeleteFunc(slices.Clone(found), func(t *gate.Tool) bool { return !slices.Contains(open, t.Name.Server) })
	if named != nil && named.Page == nil && !slices.ContainsFunc(found, func(t *gate.Tool) bool { return t.Name == named.Name }) {
		if len(opened) == 0 { // what is listed by this name, which is no app's
			return nil
		}
		return ambiguous(c, append(opened, named))
	}
	if len(opened) > 0 {
		found = opened
	}
	if len(found) > 1 {
		return ambiguous(c, found)
	}
	one := found[0]
	c.OwnName = c.Action == gate.CallTool && !(named != nil && one.Name == named.Name && !one.AppOnly)
	if c.Name = one.Name.String(); one.Page != nil {
		c.Name = one.Offered
	}
	return nil
}

// owning returns what a page may mean by a name of its server's, that the client may use.
func (a appPages) owning(ctx context.Context, p sessions.Client, c *gate.Call) (found []*gate.Tool, err error) {
	pages, err := a.pages(ctx, p)
	if err != nil {
		return nil, err
	}
	if c.Action == gate.ReadResource {
		for _, t := range pages {
			if t.Local == c.Name {
				found = append(found, t)
			}
		}
		slices.SortFunc(found, func(a, b *gate.Tool) int { return strings.Compare(a.Offered, b.Offered) })
		return found, nil
	}
	all, err := a.listed(ctx, p, gate.FeatureTool)
	if err != nil {
		return nil, err
	}
	only, err := a.cfg.AppTools(ctx, p.Who)
	servers := pages.servers()
	for _, t := range slices.Concat(all, within(p.Groups, only)) {
		if t.Local == c.Name && t.App != nil && t.App.Calls && servers[t.Name.Server] {
			found = append(found, t)
		}
	}
	return found, err
}

// ambiguous refuses a name that several servers have.
func ambiguous(c *gate.Call, found []*gate.Tool) error {
	var servers []string
	for _, t := range found {
		servers = append(servers, t.Name.Server)
	}
	slices.Sort(servers)
	what := "app tool"
	if c.Action == gate.ReadResource {
		what = "page"
	}
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("the %s %.200q is one of %s: open the app of one of them first, or name it in full", what, c.Name, strings.Join(servers, " and of "))}
}

// brief returns those of the tools that a client finds the others by, if that is all it
// is to be shown, and those with a page: hosts show the pages of listed tools only.
func (a appPages) brief(tools []*gate.Tool, pages pages) []*gate.Tool {
	if a.cfg.Brief == nil || !a.cfg.Brief() {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t *gate.Tool) bool { return !t.Relay && pages.of(t) == nil })
}
