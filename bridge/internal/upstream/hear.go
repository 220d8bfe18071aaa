package upstream

import (
	"context"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// unsubscribeTime bounds how long a server gets to end a subscription.
const unsubscribeTime = 5 * time.Second

// subscribe subscribes a call's client to a resource.
func (e *Endpoint) subscribe(ctx context.Context, l *link.Link, of *underway.Call, uri string) (gate.Doc, error) {
	if !subscribes(l.Capabilities) {
		return gate.Doc{}, &wire.RPCError{Code: mcp.CodeMethodNotFound, Message: "the server has no subscriptions"}
	}
	done, err := e.subscriptions.Alone(ctx)
	if err != nil {
		return gate.Doc{}, err
	}
	defer done()
	res := gate.MustDoc("{}")
	if len(e.subscriptions.Of(uri)) == 0 {
		if res, err = l.Dialect.Subscribe(ctx, of, uri); err != nil {
			return gate.Doc{}, err
		}
	}
	e.subscriptions.Add(uri, of.Call.ID)
	return res, nil
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

// unsubscribe ends the subscription of a call over this connection, and reports whether there was
// one.
func (e *Endpoint) unsubscribe(ctx context.Context, call, uri string) bool {
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTime)
	defer cancel()
	done, err := e.subscriptions.Alone(ctx)
	if err != nil {
		e.subscriptions.Remove(uri, call) // the server goes on sending updates that no client wants
		return false
	}
	defer done()
	had, last := e.subscriptions.Remove(uri, call)
	e.mu.Lock()
	l := e.link
	e.mu.Unlock()
	if last && l != nil {
		l.Dialect.Unsubscribe(ctx, uri)
	}
	return had
}

// resubscribe asks for all again over a new connection.
func (e *Endpoint) resubscribe(ctx context.Context, l *link.Link) {
	for _, uri := range e.subscriptions.URIs() {
		timed, cancel := context.WithTimeout(ctx, e.cfg.CallTimeout)
		_, err := l.Dialect.Subscribe(timed, nil, uri)
		cancel()
		if l.Peer.Why() != nil {
			return
		}
		if err != nil {
			e.cfg.Log.Warn("subscription lost", "error", err)
		}
	}
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

// updated takes the parameters of a notification that a resource has changed. Calls that subscribed
// to the resource over this connection get only its URI, as they subscribed to it, and nothing else
// that the server says.
func (e *Endpoint) updated(params gate.Doc) {
	uri := params.Get("uri").Text()
	if who := e.subscriptions.Of(uri); len(who) > 0 {
		e.notify(mcp.Notice{Server: e.cfg.Server, Method: mcp.MethodUpdated, Params: gate.MustDoc(string(mcp.URIParams(uri))), Subscribers: who})
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
