package gateway

import (
	"context"
	"maps"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/find"
)

// catalogTools returns the tools of the server catalog.
func (g *Gateway) catalogTools() []options.LocalTool {
	return local.CatalogTools(func(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) { return g.gate.Tools(ctx, who) })
}

// HasGroup reports whether there is a group: in Config.Groups, or what [Gateway.SetGroups]
// put in their place, or of a tool that is offered now.
func (g Operator) HasGroup(name string) bool {
	if _, ok := (*g.settings.groups.Load())[name]; ok {
		return true
	}
	return slices.ContainsFunc(g.fleet.KnownFeatures(gate.FeatureTool), func(t *gate.Tool) bool { return slices.Contains(t.Groups, name) })
}

// Groups returns the names of all groups, as HasGroup knows them, in order.
func (g Operator) Groups() []string {
	names := slices.Collect(maps.Keys(*g.settings.groups.Load()))
	for _, t := range g.fleet.KnownFeatures(gate.FeatureTool) {
		names = append(names, t.Groups...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Offer narrows the offers to clients over HTTP to those in one of the groups; an empty list
// narrows nothing. It is called before the first request.
func (g Operator) Offer(groups []string) { g.host.Offer(groups) }

// Resolve returns the name by which a principal calls a tool that it names as the tool's
// server does: see [find.Resolve].
func (g Operator) Resolve(ctx context.Context, who *gate.Principal, name string) (string, error) {
	known := g.fleet.Tools(ctx)
	if who == nil {
		return find.Resolve(name, known, nil)
	}
	visible, err := g.gate.Tools(ctx, who)
	if err != nil {
		return "", err
	}
	return find.Resolve(name, known, visible)
}
