// Package homes opens the database that gateways share, and gives the homes of principals up when a gateway drains, with the values that their sessions
// have met, so that other gateways become their homes.
package homes

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
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
	"github.com/wasmgate/wasmgate/internal/telemetry"
)

const (
	// releases is how many homes are given up at once: each may wait for calls.
	releases = 64
	// lookEvery is how often a gateway looks whether it is to give its homes up.
	lookEvery = time.Second
	// recordEvery is how often a gateway records the last records of the logs of others.
	recordEvery = time.Minute
	// idle is how long a home is kept that nothing uses, so that gateways that come get their share, and idleEvery is how often a gateway looks
	// for those.
	idle      = 10 * time.Minute
	idleEvery = time.Minute
)

// Gateway is the one whose homes these are.
type Gateway interface {
	// RecordHeads records the last records of the logs of others.
	RecordHeads(heads []string) error
	// Leave says that clients should be sent to others.
	Leave()
	// Uses reports whether an owner has something here that goes on without calls.
	Uses(of gate.Owner) bool
	// HandOver gives away what is known of the sessions of an owner, each by its ID.
	HandOver(ctx context.Context, of gate.Owner, give func(ctx context.Context, values map[string][]byte) error) error
}

// Homes are those of one gateway.
type Homes struct {
	Store   *postgres.Store
	Peers   *cluster.Peers // nil if no other gateway reaches this one
	Gateway Gateway        // set before the first request
	Counts  Counts
	ttl     func() time.Duration
	log     *slog.Logger
}

// Counts are what is counted of the database and of other gateways.
type Counts struct {
	Uses     telemetry.Tally // of the database, by what they did
	Errors   telemetry.Tally // by kind
	Forwards telemetry.Tally // requests that were forwarded, by what came of them
	Homes    atomic.Int64    // of principals that are here, as of a minute ago
}

// Metrics are what is counted, and how it stands.
func (h *Homes) Metrics() []telemetry.Metric {
	others := 0
	for _, n := range h.Store.Nodes() {
		if n.Name != h.Store.Node() && !n.Gone {
			others++
		}
	}
	return []telemetry.Metric{
		h.Counts.Uses.Histogram("wasmgate.store.duration", "Uses of the database.", "op"),
		h.Counts.Errors.Counter("wasmgate.store.errors", "Uses of the database that failed.", "{error}", "kind"),
		h.Counts.Forwards.Histogram("wasmgate.forward.duration", "Requests that were forwarded to another gateway, until its answer began.", "result"),
		h.Counts.Forwards.Counter("wasmgate.forwarded", "Requests that were forwarded to another gateway.", "{request}", "result"),
		telemetry.NewGauge("wasmgate.homes", "Principals whose home this gateway is, as of a minute ago.", "{principal}", float64(h.Counts.Homes.Load())),
		telemetry.NewGauge("wasmgate.lease", "Time until other gateways may take over what is here, unless this one gives another sign of life.", "s", max(0, h.Store.LeaseLeft().Seconds())),
		telemetry.NewGauge("wasmgate.peers", "Other gateways of the database that run.", "{gateway}", float64(others)),
		telemetry.NewGauge("wasmgate.skew", "By how much this machine's clock is ahead of the database's.", "s", h.Store.Skew().Seconds()),
	}
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
	o.Observe = func(op string, took time.Duration, failed string) {
		h.Counts.Uses.Add(op, took)
		if failed != "" {
			h.Counts.Errors.Add(failed, took)
		}
	}
	if h.Store, err = postgres.Open(ctx, o); err != nil {
		return nil, err
	}
	provenance.ShareKey(values)
	h.Peers, err = cluster.New(cluster.Options{Node: node, Listen: c.Cluster.Listen, Key: peers, Timeout: c.Store.Timeout, Find: h.Store.Find, Home: h.Home, Drains: h.Store.Drains, Internal: heads.Handler(c.Audit.Path), Observe: h.Counts.Forwards.Add, Log: log})
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
	if err := h.release(ctx, of, 0); err != nil {
		return "", err
	}
	return h.Store.Home(ctx, of, h.ttl(), true)
}

// release gives up the home of an owner, unless it was used within idle.
func (h *Homes) release(ctx context.Context, of gate.Owner, idle time.Duration) error {
	return h.Gateway.HandOver(ctx, of, func(ctx context.Context, values map[string][]byte) error {
		return h.Store.Release(ctx, of, idle, values)
	})
}

// Release gives up all homes.
func (h *Homes) Release(ctx context.Context) {
	h.releaseAll(ctx, 0, func(gate.Owner) bool { return true })
}

// releaseIdle gives up the homes that nothing has used for a while.
func (h *Homes) releaseIdle(ctx context.Context) {
	h.releaseAll(ctx, idle, func(of gate.Owner) bool { return !h.Gateway.Uses(of) })
}

// releaseAll gives up the homes that were not used for so long, if may is true of their owner.
func (h *Homes) releaseAll(ctx context.Context, idle time.Duration, may func(gate.Owner) bool) {
	all, err := h.Store.Homes(ctx, idle)
	var g errgroup.Group
	g.SetLimit(releases)
	for _, of := range all {
		g.Go(func() error {
			if !may(of) {
				return nil
			}
			if err := h.release(ctx, of, idle); !errors.Is(err, postgres.ErrUsed) {
				return err
			}
			return nil
		})
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

// Run records what others have recorded last, and gives up homes that are idle, and all once the gateway drains, until ctx ends.
func (h *Homes) Run(ctx context.Context) {
	said := false
	var recorded, looked time.Time
	watch.Together(ctx, lookEvery, func() {
		if time.Since(recorded) >= recordEvery && len(h.Store.Nodes()) > 1 {
			recorded = time.Now()
			if err := h.record(); err != nil {
				h.log.Warn("the last records of other gateways are not recorded", "error", err)
			}
		}
		if !h.Store.Drains() {
			if time.Since(looked) >= idleEvery {
				looked = time.Now()
				h.releaseIdle(ctx)
				if all, err := h.Store.Homes(ctx, 0); err == nil {
					h.Counts.Homes.Store(int64(len(all)))
				}
			}
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
