package link

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// New returns a link over a connection, which receives nothing before [Link.Run].
func New(c wire.Conn, e Endpoint) *Link {
	l := &Link{endpoint: e, ended: make(chan struct{}), again: make(chan struct{}, 1), wanted: make(chan struct{}, 1), tuning: make(chan struct{}, 1)}
	l.Dialect = sessions{l}
	l.Peer = wire.NewPeer(c, l.notified)
	l.Peer.Asked.Call = func(of wire.Call, params gate.Doc) wire.Call {
		if c := e.Asker(underway.Of(of), params); c != nil {
			return c
		}
		return nil
	}
	if h, ok := c.(*wire.HTTPConn); ok {
		h.Polls = l.Peer.Polled
	}
	return l
}

// notified takes a notification of the server.
func (l *Link) notified(method string, params gate.Doc, of wire.Call) {
	switch method {
	case "notifications/tools/list_changed":
		l.ListsChanged()
	case "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if l.endpoint.ListsFeatures() {
			l.ListsChanged()
		}
	case mcp.MethodAcknowledged:
		l.listening.acknowledged(params)
	case mcp.MethodCancelled:
		l.listening.ended(params.Get("requestId"))
	default:
		l.endpoint.Notified(l, method, params, underway.Of(of))
	}
}

// Run receives until the connection ends, and returns why it did.
func (l *Link) Run(ctx context.Context) error {
	defer close(l.ended)
	return l.Peer.Run(ctx)
}
