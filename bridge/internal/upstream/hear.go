package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wants"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// unsubscribeTime bounds how long a server gets to end a subscription.
const unsubscribeTime = 5 * time.Second

// hearing is what clients want to hear of a server over one connection.
type hearing struct {
	*life
	subscriptions *wants.Subscriptions
}

// subscribe subscribes a call's client to a resource.
func (h *hearing) subscribe(ctx context.Context, l *link.Link, of *underway.Call, uri string) (gate.Doc, error) {
	if !subscribes(l.Capabilities) {
		return gate.Doc{}, &wire.RPCError{Code: mcp.CodeMethodNotFound, Message: "the server has no subscriptions"}
	}
	done, err := h.subscriptions.Alone(ctx)
	if err != nil {
		return gate.Doc{}, err
	}
	defer done()
	res := gate.MustDoc("{}")
	if len(h.subscriptions.Of(uri)) == 0 {
		if res, err = l.Dialect.Subscribe(ctx, of, uri); err != nil {
			return gate.Doc{}, err
		}
	}
	h.subscriptions.Add(uri, of.Call.ID)
	return res, nil
}

// unsubscribe ends the subscription of a call over this connection, and reports whether there was
// one.
func (h *hearing) unsubscribe(ctx context.Context, call, uri string) bool {
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTime)
	defer cancel()
	done, err := h.subscriptions.Alone(ctx)
	if err != nil {
		h.subscriptions.Remove(uri, call) // the server goes on sending updates that no client wants
		return false
	}
	defer done()
	had, last := h.subscriptions.Remove(uri, call)
	h.mu.Lock()
	l := h.link
	h.mu.Unlock()
	if last && l != nil {
		l.Dialect.Unsubscribe(ctx, uri)
	}
	return had
}

// resubscribe asks for all again over a new connection.
func (h *hearing) resubscribe(ctx context.Context, l *link.Link) {
	for _, uri := range h.subscriptions.URIs() {
		timed, cancel := context.WithTimeout(ctx, h.cfg.CallTimeout)
		_, err := l.Dialect.Subscribe(timed, nil, uri)
		cancel()
		if l.Peer.Why() != nil {
			return
		}
		if err != nil {
			h.cfg.Log.Warn("subscription lost", "error", err)
		}
	}
}

// updated takes the parameters of a notification that a resource has changed. Calls that subscribed
// to the resource over this connection get only its URI, as they subscribed to it, and nothing else
// that the server says.
func (h *hearing) updated(params gate.Doc) {
	uri := params.Get("uri").Text()
	if who := h.subscriptions.Of(uri); len(who) > 0 {
		h.notify(mcp.Notice{Server: h.cfg.Server, Method: mcp.MethodUpdated, Params: gate.MustDoc(string(mcp.URIParams(uri))), Subscribers: who})
	}
}
