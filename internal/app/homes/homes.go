// Package homes opens the database that gateways share, and gives the homes of principals up when a gateway drains, with the values that their sessions
// have met, so that other gateways become their homes.
package homes

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/cluster"
	"github.com/wasmgate/wasmgate/internal/cluster/heads"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/watch"
)

const (
	// releases is how many homes are given up at once: each may wait for calls.
	releases = 64
	// lookEvery is how often a gateway looks whether it is to give its homes up.
	lookEvery = time.Second
	// recordEvery is how often a gateway records the last records of the logs of others.
	recordEvery = time.Minute
)

// Gateway is the one whose homes these are.
type Gateway interface {
	// RecordHeads records the last records of the logs of others.
	RecordHeads(heads []string) error
	// Leave says that clients should be sent to others.
	Leave()
	// HandOver gives away what is known of the sessions of an owner, each by its ID.
	HandOver(ctx context.Context, of gate.Owner, give func(ctx context.Context, values map[string][]byte) error) error
}

// Homes are those of one gateway.
type Homes struct {
	Store   *postgres.Store
	Peers   *cluster.Peers // nil if no other gateway reaches this one
	Gateway Gateway        // set before the first request
	ttl     func() time.Duration
	log     *slog.Logger
}

// Open opens the database of a configuration as the gateway of a name. TTL is how long sessions last without
// use.
func Open(ctx context.Context, c *config.Config, node string, ttl func() time.Duration, log *slog.Logger) (*Homes, error) {
	peers, err := members.Key(c, members.ClusterKey)
	if err != nil {
		return nil, err
	}
	values, err := members.Key(c, "wasmgate provenance 1")
	if err != nil {
		return nil, err
	}
	o := members.Options(c, node)
	o.Lost = func(err error) { log.Error("all calls are refused", "error", err) }
	h := &Homes{ttl: ttl, log: log}
	if h.Store, err = postgres.Open(ctx, o); err != nil {
		return nil, err
	}
	provenance.ShareKey(values)
	h.Peers, err = cluster.New(cluster.Options{Node: node, Listen: c.Cluster.Listen, Key: peers, Find: h.Store.Find, Home: h.Home, Drains: h.Store.Drains, Internal: heads.Handler(c.Audit.Path), Log: log})
	if err != nil {
		return nil, errors.Join(err, h.Store.Close(ctx))
	}
	return h, nil
}

// Home returns the gateway that has what the requests of an owner leave behind. If this one drains, it gives
// that away first.
func (h *Homes) Home(ctx context.Context, of gate.Owner, now bool) (string, error) {
	node, err := h.Store.Home(ctx, of, h.ttl(), now)
	if err != nil || !h.Store.Drains() || node != h.Store.Node() {
		return node, err
	}
	if err := h.release(ctx, of); err != nil {
		return "", err
	}
	return h.Store.Home(ctx, of, h.ttl(), true)
}

func (h *Homes) release(ctx context.Context, of gate.Owner) error {
	return h.Gateway.HandOver(ctx, of, func(ctx context.Context, values map[string][]byte) error {
		return h.Store.Release(ctx, of, values)
	})
}

// Release gives up all homes.
func (h *Homes) Release(ctx context.Context) {
	all, err := h.Store.Homes(ctx)
	var g errgroup.Group
	g.SetLimit(releases)
	for _, of := range all {
		g.Go(func() error { return h.release(ctx, of) })
	}
	if done := g.Wait(); err == nil {
		err = done
	}
	if err != nil && ctx.Err() == nil {
		h.log.Warn("what sessions have met is not handed over", "error", err)
	}
}

// record records the last records of the logs of other gateways that run.
func (h *Homes) record() error {
	var others []string
	for _, n := range h.Store.Nodes() {
		if n.Name != h.Store.Node() && !n.Gone && n.Audit != "" {
			others = append(others, n.Name+" "+n.Audit)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return h.Gateway.RecordHeads(others)
}

// Run records what others have recorded last, and gives the homes up once the gateway drains, until ctx ends.
func (h *Homes) Run(ctx context.Context) {
	said := false
	var recorded time.Time
	watch.Together(ctx, lookEvery, func() {
		if time.Since(recorded) >= recordEvery && len(h.Store.Nodes()) > 1 {
			recorded = time.Now()
			if err := h.record(); err != nil {
				h.log.Warn("the last records of other gateways are not recorded", "error", err)
			}
		}
		if !h.Store.Drains() {
			return
		}
		if h.Gateway.Leave(); !said {
			said = true
			h.log.Info("draining: other gateways answer what clients begin, until this one starts again")
		}
		h.Release(ctx)
	})
}

// Linger goes on serving for a while after the end was asked for, so that load balancers notice. Other
// gateways answer what clients begin meanwhile.
func (h *Homes) Linger(ctx context.Context, wait time.Duration) {
	if _, err := h.Store.Drain(ctx, h.Store.Node()); err != nil {
		h.log.Warn("other gateways do not take over", "error", err)
	}
	h.Gateway.Leave()
	h.log.Info("lingering until load balancers send clients elsewhere", "for", wait)
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}
