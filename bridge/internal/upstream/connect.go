package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// connect makes a connection: transport, handshake, first listing. ctx, which is the
// limit's, bounds it. The error is a [*fault.Fault].
func (cn *connector) connect(ctx context.Context, limit *startLimit) (*link.Link, *listing.Tools, error) {
	if cn.cfg.Broken != "" {
		return nil, nil, fault.New(fault.SpawnFailed, cn.cfg.Server, "configuration", errors.New(cn.cfg.Broken))
	}
	if cn.cfg.Command != "" {
		said := slog.LevelInfo
		if !cn.ownership.reports() {
			said = slog.LevelDebug
		}
		command, err := cn.cfg.command(ctx)
		if err != nil {
			return nil, nil, fault.New(fault.SpawnFailed, cn.cfg.Server, "secrets", err)
		}
		c, err := wire.StartStdio(ctx, command, cn.cfg.MaxMessage, cn.cfg.Log, said)
		if err != nil {
			return nil, nil, fault.New(fault.SpawnFailed, cn.cfg.Server, "start", err)
		}
		limit.watches(c)
		return cn.open(ctx, c, fault.SpawnFailed)
	}
	if cn.cfg.Dial != nil {
		t, err := cn.cfg.Dial()
		if err != nil {
			return nil, nil, fault.New(fault.Transport, cn.cfg.Server, "connect", err)
		}
		return cn.openSDK(ctx, t, nil)
	}
	if cn.cfg.Transport == options.TransportSSE {
		return cn.openSSE(ctx)
	}
	remote, err := cn.remote(ctx)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, cn.cfg.Server, "secrets", err)
	}
	c, err := wire.NewHTTPConn(ctx, remote)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, cn.cfg.Server, "connect", err)
	}
	l, tools, err := cn.open(ctx, c, fault.Transport)
	if cn.cfg.Transport == options.TransportHTTP || !wire.BeforeStreams(err) {
		return l, tools, err
	}
	l, tools, second := cn.openSSE(ctx)
	if second != nil {
		return nil, nil, fault.New(fault.From(cn.cfg.Server, "", second).Kind, cn.cfg.Server, "connect", fmt.Errorf("%w; and over the older HTTP+SSE: %w", err, second))
	}
	return l, tools, nil
}

func (cn *connector) openSSE(ctx context.Context) (*link.Link, *listing.Tools, error) {
	remote, err := cn.remote(ctx)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, cn.cfg.Server, "secrets", err)
	}
	client, err := wire.NewHTTPClient(remote)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, cn.cfg.Server, "connect", err)
	}
	return cn.openSDK(ctx, &sdk.SSEClientTransport{Endpoint: cn.cfg.URL, HTTPClient: client, MaxEventSize: int(cn.cfg.MaxMessage)}, client)
}

func (cn *connector) openSDK(ctx context.Context, t sdk.Transport, client *http.Client) (*link.Link, *listing.Tools, error) {
	c, err := wire.DialSDK(ctx, t, cn.cfg.MaxMessage)
	if err != nil {
		return nil, nil, fault.New(fault.KindOf(err, fault.Transport), cn.cfg.Server, "connect", err)
	}
	c.Client = client
	return cn.open(ctx, c, fault.Transport)
}

// open makes a link of a connection, or closes it. otherwise is the kind of a
// fault that says nothing better of itself.
func (cn *connector) open(ctx context.Context, c wire.Conn, otherwise fault.Kind) (*link.Link, *listing.Tools, error) {
	l := cn.start(ctx, c)
	doing := "handshake"
	protocol := cn.cfg.Protocol
	if cn.cfg.URL != "" && l.OverHTTP() == nil && protocol != mcp.Stateless {
		protocol = mcp.Revision // the older HTTP+SSE is used with no other revision
	}
	err := l.Agree(ctx, protocol, cn.cfg.ConnectTimeout, cn.cfg.declares(cn.ownership.capabilities()))
	var tools *listing.Tools
	if err == nil {
		doing, otherwise = "list tools", fault.Transport
		tools, err = cn.ownership.list(ctx, l)
	}
	if err != nil {
		l.Close()
		return nil, nil, fault.New(fault.KindOf(err, otherwise), cn.cfg.Server, doing, l.EndOf(err))
	}
	l.Dialect.Listens(ctx)
	cn.ownership.opened(ctx, l)
	return l, tools, nil
}

// start begins to receive.
func (cn *connector) start(ctx context.Context, c wire.Conn) *link.Link {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := link.New(c, holder{cn})
	l.Declares = cn.cfg.declares(gate.Doc{})
	cn.wg.Go(func() {
		defer stop()
		err := l.Run(life)
		cn.lost(life, l, err)
		if err := c.Close(); err != nil { // who cannot be spoken with is ended
			cn.cfg.Log.Warn("server not ended", "error", err)
		}
	})
	return l
}

// A holder is what a link may ask of its endpoint.
type holder struct{ *connector }

var _ link.Endpoint = holder{}

func (h holder) ClientInfo() []byte { return h.clientInfo }

func (h holder) Ready(ctx context.Context, trial bool) (*link.Link, error) {
	l, _, err := h.ready(ctx, trial)
	return l, err
}

func (h holder) Ending() bool {
	phase := h.Phase()
	return phase == status.Closing || phase == status.Closed
}

func (h holder) Run(f func()) { h.wg.Go(f) }

func (h holder) ListsFeatures() bool { return h.ownership.listsFeatures() }

func (h holder) Asker(of *underway.Call, params gate.Doc) *underway.Call {
	return h.ownership.asker(of, params)
}

func (h holder) Notified(l *link.Link, method string, params gate.Doc, of *underway.Call) {
	switch method {
	case mcp.MethodProgress:
		if c := h.calls.ByToken(params.Get(mcp.MetaProgress)); c != nil {
			c.Progressed(params)
		}
	case mcp.MethodLog:
		h.logged(l, params, of)
	case mcp.MethodUpdated:
		h.hearing.updated(params)
	}
}

// logged takes a log message of the server. It belongs to the call that the transport names, or
// else to the call that the ownership names.
func (cn *connector) logged(l *link.Link, params gate.Doc, of *underway.Call) {
	how := mcp.SeverityOf(params.Get("level").Text())
	if how == 0 || params.Kind() != doc.Object {
		return
	}
	if of == nil {
		of = cn.ownership.logger(l)
	}
	switch {
	case of == nil:
		cn.ownership.logged(how, params)
	case of.Level > 0 && how >= of.Level:
		of.Log(params)
	}
}

type permitKey struct{}

// remote is the server that URL says.
func (cn *connector) remote(ctx context.Context) (wire.Remote, error) {
	c := cn.cfg
	headers, err := c.headers(ctx)
	if err != nil {
		return wire.Remote{}, err
	}
	r := wire.Remote{URL: c.URL, Headers: headers, DialContext: c.DialContext, PinTLS: c.PinTLS, MaxMessage: c.MaxMessage}
	if c.Authorize == nil {
		return r, nil
	}
	r.Authorize = func(ctx context.Context, refused *http.Response) (string, error) {
		p, _ := ctx.Value(permitKey{}).(gate.Permit)
		who, p := cn.ownership.caller(p)
		return c.Authorize(ctx, who, p, refused)
	}
	return r, nil
}
