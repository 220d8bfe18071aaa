package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
)

// connect makes a connection: transport, handshake, first listing. ctx, which is the
// limit's, bounds it. The error is a [*Fault].
func (e *Endpoint) connect(ctx context.Context, limit *startLimit) (*link, *listing.Tools, error) {
	if e.cfg.Broken != "" {
		return nil, nil, &Fault{SpawnFailed, e.cfg.Server, "configuration", errors.New(e.cfg.Broken)}
	}
	if e.cfg.Command != "" {
		said := slog.LevelInfo
		if !e.ownership.reports() {
			said = slog.LevelDebug
		}
		c, err := wire.StartStdio(ctx, e.cfg.command(), e.cfg.MaxMessage, e.cfg.Log, said)
		if err != nil {
			return nil, nil, &Fault{SpawnFailed, e.cfg.Server, "start", err}
		}
		limit.watches(c)
		return e.open(ctx, c, SpawnFailed)
	}
	if e.cfg.Dial != nil {
		t, err := e.cfg.Dial()
		if err != nil {
			return nil, nil, &Fault{Transport, e.cfg.Server, "connect", err}
		}
		return e.openSDK(ctx, t, nil)
	}
	if e.cfg.Transport == TransportSSE {
		return e.openSSE(ctx)
	}
	c, err := wire.NewHTTPConn(ctx, e.remote())
	if err != nil {
		return nil, nil, &Fault{Transport, e.cfg.Server, "connect", err}
	}
	l, tools, err := e.open(ctx, c, Transport)
	if e.cfg.Transport == TransportHTTP || !beforeStreams(err) {
		return l, tools, err
	}
	l, tools, second := e.openSSE(ctx)
	if second != nil {
		return nil, nil, &Fault{asFault(e.cfg.Server, "", second).Kind, e.cfg.Server, "connect", fmt.Errorf("%w; and over the older HTTP+SSE: %w", err, second)}
	}
	return l, tools, nil
}

func (e *Endpoint) openSSE(ctx context.Context) (*link, *listing.Tools, error) {
	client, err := wire.NewHTTPClient(e.remote())
	if err != nil {
		return nil, nil, &Fault{Transport, e.cfg.Server, "connect", err}
	}
	return e.openSDK(ctx, &sdk.SSEClientTransport{Endpoint: e.cfg.URL, HTTPClient: client, MaxEventSize: int(e.cfg.MaxMessage)}, client)
}

func (e *Endpoint) openSDK(ctx context.Context, t sdk.Transport, client *http.Client) (*link, *listing.Tools, error) {
	c, err := wire.DialSDK(ctx, t, e.cfg.MaxMessage)
	if err != nil {
		return nil, nil, &Fault{kindOf(err, Transport), e.cfg.Server, "connect", err}
	}
	c.Client = client
	return e.open(ctx, c, Transport)
}

// open makes a link of a connection, or closes it. otherwise is the kind of a
// fault that says nothing better of itself.
func (e *Endpoint) open(ctx context.Context, c wire.Conn, otherwise FaultKind) (*link, *listing.Tools, error) {
	l := e.start(ctx, c)
	doing := "handshake"
	err := l.agree(ctx, &e.cfg, e.ownership.capabilities())
	var tools *listing.Tools
	if err == nil {
		doing, otherwise = "list tools", Transport
		tools, err = e.ownership.list(ctx, l)
	}
	if err != nil {
		l.close()
		return nil, nil, &Fault{kindOf(err, otherwise), e.cfg.Server, doing, l.endOf(err)}
	}
	l.dialect.listens(ctx)
	e.ownership.opened(ctx, l)
	return l, tools, nil
}

// endOf returns why a connection came to nothing. How a child ended, and what it said, is
// known once it has, and says more than what could not be written to it.
func (l *link) endOf(err error) error {
	if c, ok := l.peer.Conn.(*wire.StdioConn); ok && c.Ended(err) {
		<-l.ended
		if why := l.peer.Why(); why != nil {
			return why
		}
	}
	return err
}

// start begins to receive.
func (e *Endpoint) start(ctx context.Context, c wire.Conn) *link {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &link{endpoint: e, ended: make(chan struct{}), again: make(chan struct{}, 1), wanted: make(chan struct{}, 1), tuning: make(chan struct{}, 1)}
	l.peer = wire.NewPeer(c, func(method string, params gate.Doc, of wire.Call) {
		switch method {
		case "notifications/tools/list_changed":
			l.listsChanged()
		case "notifications/prompts/list_changed", "notifications/resources/list_changed":
			if e.ownership.listsFeatures() {
				l.listsChanged()
			}
		case mcp.MethodAcknowledged:
			l.listening.acknowledged(params)
		case mcp.MethodCancelled:
			l.listening.ended(params.Get("requestId"))
		case mcp.MethodProgress:
			if c := e.calls.ByToken(params.Get(mcp.MetaProgress)); c != nil {
				c.Progressed(params)
			}
		case mcp.MethodLog:
			e.logged(l, params, underway.Of(of))
		case mcp.MethodUpdated:
			e.updated(params)
		}
	})
	l.peer.Asked.Call = func(of wire.Call, params gate.Doc) wire.Call {
		if c := e.ownership.asker(underway.Of(of), params); c != nil {
			return c
		}
		return nil
	}
	l.dialect = sessions{l}
	if h, ok := c.(*wire.HTTPConn); ok {
		h.Polls = l.peer.Polled
	}
	e.wg.Go(func() {
		defer stop()
		err := l.peer.Run(life)
		close(l.ended)
		e.lost(life, l, err)
		if err := c.Close(); err != nil { // who cannot be spoken with is ended
			e.cfg.Log.Warn("server not ended", "error", err)
		}
	})
	return l
}

// list reads all that the server lists.
func (e *Endpoint) list(ctx context.Context, l *link) (*listing.Tools, error) {
	began, hints := time.Now(), make(map[gate.Feature]hint)
	raw, kept, err := listed(ctx, l, "tools/list", "tools")
	if err == nil {
		hints[gate.FeatureTool] = kept
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code == mcp.CodeMethodNotFound && raw == nil {
		raw, err = nil, nil // a server without tools
	}
	if err != nil {
		return nil, err
	}
	tools := e.toolsOf(l, raw)
	if tools.Features, err = e.listFeatures(ctx, l, hints); err != nil {
		return nil, err
	}
	l.dialect.keeps(began, hints)
	return tools, nil
}

// logged takes a log message of the server, in the call of which it is if the transport
// tells, or else the ownership.
func (e *Endpoint) logged(l *link, params gate.Doc, of *underway.Call) {
	how := mcp.SeverityOf(params.Get("level").Text())
	if how == 0 || params.Kind() != doc.Object {
		return
	}
	if of == nil {
		of = e.ownership.logger(l)
	}
	switch {
	case of == nil:
		e.ownership.logged(how, params)
	case of.Level > 0 && how >= of.Level:
		of.Log(params)
	}
}
