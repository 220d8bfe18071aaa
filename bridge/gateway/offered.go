package gateway

import (
	"context"
	"maps"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/find"
)

// catalogTools returns the tools of the server catalog.
func (g *Gateway) catalogTools() []options.LocalTool {
	return local.CatalogTools(func(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) { return g.gate.Tools(ctx, who) })
}

// HasGroup reports whether there is a group: in Config.Groups, or what [Gateway.SetGroups]
// put in their place, or of a tool that is offered now.
func (g operator) HasGroup(name string) bool {
	if _, ok := (*g.groups.Load())[name]; ok {
		return true
	}
	return slices.ContainsFunc(g.fleet.KnownFeatures(gate.FeatureTool), func(t *gate.Tool) bool { return slices.Contains(t.Groups, name) })
}

// Groups returns the names of all groups, as HasGroup knows them, in order.
func (g operator) Groups() []string {
	names := slices.Collect(maps.Keys(*g.groups.Load()))
	for _, t := range g.fleet.KnownFeatures(gate.FeatureTool) {
		names = append(names, t.Groups...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Conflicts returns the names that more than one server, or the program that embeds the gateway,
// would offer: which one has each, and what became of the other.
func (g operator) Conflicts() []status.Conflict { return g.fleet.Conflicts() }

// Offer narrows the offers to clients over HTTP to those in one of the groups; an empty list
// narrows nothing. It is called before the first request.
func (g operator) Offer(groups []string) { g.host.Offer(groups) }

// Share has requests over HTTP about what is at other gateways answered there. While sessions keep
// values here, or servers have processes for each client, all requests of a principal are answered by
// one gateway. It is called before the first request.
func (g operator) Share(p transport.Peers) {
	g.host.Share(p, func() bool { return g.gate.Parts().TrackValues || g.fleet.Sessions.OwnConnections() })
}

// Resolve returns the name by which a principal calls a tool that it names as the tool's
// server does: see [find.Resolve].
func (g operator) Resolve(ctx context.Context, who *gate.Principal, name string) (string, error) {
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

// Leave says that the gateway is about to leave its cluster: clients should be sent to others.
func (g operator) Leave() { g.leaving.Store(true) }

// HandOver gives away what is known of the sessions of an owner, each by its ID, and forgets it if give
// returns nil. It waits a while for requests of the owner that are under way.
func (g operator) HandOver(ctx context.Context, of gate.Owner, give func(ctx context.Context, values map[string][]byte) error) error {
	g.host.Await(ctx, of)
	return session.HandOver(ctx, g.sessions, of, give)
}

// Uses reports whether an owner has something at this gateway that goes on without calls: a session of MCP, a process, a job, a request under way.
func (g operator) Uses(of gate.Owner) bool {
	return g.host.Uses(of) || g.fleet.Sessions.Uses(of) || g.jobs != nil && g.jobs.Runs(of)
}
