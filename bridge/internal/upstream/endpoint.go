package upstream

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wants"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/product"
)

var _ gate.Upstream = (*Endpoint)(nil)

// An Endpoint is the connection to one server. It connects on request, and again by itself whenever
// it is faulted. It is a [gate.Upstream] of only that server's tools. Use it from several
// goroutines.
type Endpoint struct {
	cfg config
	uses
	*life
	*listed
	*hearing
	*connector
	*caller

	audiences audiences // of the same server; none of one that is somebody's own
	pool      *Pool     // of a whole fleet; nil bounds nothing
}

// New returns an endpoint in phase Idle. It starts nothing.
func New(server options.Endpoint) (*Endpoint, error) {
	cfg := config{server}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return newEndpoint(cfg), nil
}

// newEndpoint returns an endpoint with a configuration that was checked.
func newEndpoint(cfg config) *Endpoint {
	e := &Endpoint{cfg: cfg}
	e.life = newLife(&e.cfg)
	e.listed = &listed{life: e.life, reader: &reader{cfg: &e.cfg}, methods: listing.NewMethods(cfg.Server, cfg.Tools, cfg.Methods), late: e.audiences.listedBeyond}
	e.hearing = &hearing{e.life, wants.NewSubscriptions()}
	name := map[string]string{"name": cmp.Or(cfg.ClientName, product.Name), "version": cmp.Or(cfg.ClientVersion, product.Version())}
	e.connector = &connector{life: e.life, listed: e.listed, hearing: e.hearing, clientInfo: mcp.MustJSON(name)}
	e.caller = &caller{e.connector, new(wants.Levels)}
	e.ownership = shared{e.caller}
	return e
}

// Join makes the endpoint one of a fleet. The pool bounds the processes of all endpoints, and all
// keeps their log levels. The functions are called when something happens, and may not block. Call
// Join before the endpoint is connected.
func (e *Endpoint) Join(pool *Pool, all *wants.Levels, changed func(), observe func(status.Declaration), tell func(mcp.Notice)) {
	e.pool, e.levels, e.life.watchers = pool, all, watchers{changed, observe, tell}
}

// Unsubscribe ends the subscription of a call over any connection to the server, and reports
// whether there was one.
func (e *Endpoint) Unsubscribe(ctx context.Context, call, uri string) bool {
	for _, one := range append(e.audiences.endpoints(), e) {
		if slices.Contains(one.subscriptions.Of(uri), call) {
			one.unsubscribe(ctx, call, uri)
			return true
		}
	}
	return false
}

// Inherit takes over the subscriptions of the endpoint whose place e takes.
func (e *Endpoint) Inherit(old *Endpoint) {
	if old == nil {
		return
	}
	for _, o := range append(old.audiences.endpoints(), old) {
		for _, uri := range o.subscriptions.URIs() {
			for _, call := range o.subscriptions.Of(uri) {
				e.subscriptions.Add(uri, call)
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.link; l != nil && e.phase == status.Ready {
		e.wg.Go(func() { e.resubscribe(context.Background(), l) })
	}
}

// SetLevel gives the server the level that a session wants, over the connection that carries its
// calls. A connection that is not open gets the level with the next call.
func (e *Endpoint) SetLevel(ctx context.Context, k gate.SessionKey, from mcp.Severity) {
	ctx = context.WithoutCancel(ctx)
	tune := func(one *Endpoint, atMost bool) {
		one.mu.Lock()
		defer one.mu.Unlock()
		if l := one.link; l != nil && one.phase == status.Ready {
			one.wg.Go(func() { l.Dialect.Tune(ctx, from, atMost) })
		}
	}
	own := e.audiences.of(k)
	for _, a := range own {
		tune(a.endpoint, false)
	}
	if len(own) == 0 {
		tune(e, true)
	}
}

// Close ends the connection and the server's process, and waits for both. It
// may be called more than once.
func (e *Endpoint) Close() error {
	e.audiences.close()
	return e.connector.close()
}

// End closes the endpoint, and logs what goes wrong with that.
func (e *Endpoint) End() {
	if err := e.Close(); err != nil {
		e.cfg.Log.Warn("server not ended", "error", err)
	}
}

// AlwaysOwn reports whether the clients of the server have a connection each, whatever they
// are capable of.
func (e *Endpoint) AlwaysOwn() bool { return e.cfg.alwaysOwn() }

// LongestCall is how long a call may take if the server tells of its progress.
func (e *Endpoint) LongestCall() time.Duration { return e.cfg.longestCall() }

// UsedBy reports whether an owner has a connection of its own.
func (e *Endpoint) UsedBy(of gate.Owner) bool {
	e.audiences.mu.Lock()
	defer e.audiences.mu.Unlock()
	return slices.ContainsFunc(e.audiences.all, func(a *audience) bool { return a.session.Owner == of })
}

// RootsChanged says that the roots of the client of a session have changed.
func (e *Endpoint) RootsChanged(k gate.SessionKey) { e.audiences.rootsChanged(k) }

// EndSession closes the connections that a session has of its own. It does not wait.
func (e *Endpoint) EndSession(k gate.SessionKey) { e.audiences.end(k) }

// Invoke implements [gate.Upstream]: one request, sent again if the server cannot have seen
// it, or may see it twice (see [options.Endpoint.Retry] and [options.Endpoint.Retries]).
func (e *Endpoint) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, _, ok := p.Open()
	if !ok {
		return gate.Result{}, ErrNoPermit
	}
	if e.ownership.owns(c) {
		return e.invokeOwn(ctx, p, c)
	}
	return e.invoke(ctx, p)
}
