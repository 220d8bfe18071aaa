package gateway

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/session"
)

// A Cluster is a gateway as one of several that share a database. [Operator.Cluster] returns one;
// the zero Cluster is of no use. Use it from several goroutines.
type Cluster struct{ of *Gateway }

// Cluster returns the gateway as one of several.
func (g Operator) Cluster() Cluster { return Cluster{g.Gateway} }

// Share has requests over HTTP about what is at other gateways answered there. While sessions keep
// values here, or servers have processes for each client, all requests of a principal are answered by
// one gateway. It is called before the first request.
func (c Cluster) Share(p options.Peers) {
	c.of.host.Share(p, func() bool { return c.of.gate.Parts().TrackValues || c.of.fleet.Sessions.OwnConnections() })
}

// SharePins has pins kept in documents that several gateways share, each of a name. It is called
// before the first request.
func (c Cluster) SharePins(documents func(name string) options.Document) error {
	if c.of.pins == nil {
		return nil
	}
	return c.of.pins.Share(documents)
}

// RecordHeads records heads of the logs of other gateways, each as NODE SEQ:HASH: what is cut off or forged
// there shows here.
func (c Cluster) RecordHeads(heads []string) error {
	return c.of.journal.note(audit.Entry{Event: audit.Heads, Code: "ok", Heads: heads})
}

// ReturnRates puts back what this gateway has taken of rates that several count together, and not used.
func (c Cluster) ReturnRates(ctx context.Context) error {
	return c.of.settings.limits.ReturnRates(ctx)
}

// Leave says that the gateway is about to leave its cluster: clients should be sent to others.
func (c Cluster) Leave() { c.of.leaving.Store(true) }

// HandOver gives away what is known of the sessions of an owner, each by its ID, and forgets it if give
// returns nil. It waits a while for requests of the owner that are under way.
func (c Cluster) HandOver(ctx context.Context, of gate.Owner, give func(ctx context.Context, values map[string][]byte) error) error {
	c.of.host.Await(ctx, of)
	return session.HandOver(ctx, c.of.sessions.Sessions, of, give)
}

// Uses reports whether an owner has something at this gateway that goes on without calls: a session of MCP, a
// process, a job, a request under way.
func (c Cluster) Uses(of gate.Owner) bool {
	return c.of.host.Uses(of) || c.of.fleet.Sessions.Uses(of) || c.of.jobs.Runner != nil && c.of.jobs.Runs(of)
}
