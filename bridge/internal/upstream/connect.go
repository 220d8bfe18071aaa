package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

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
	"github.com/wasmgate/wasmgate/internal/apps"
)

// connect makes a connection: transport, handshake, first listing. ctx, which is the
// limit's, bounds it. The error is a [*fault.Fault].
func (e *Endpoint) connect(ctx context.Context, limit *startLimit) (*link.Link, *listing.Tools, error) {
	if e.cfg.Broken != "" {
		return nil, nil, fault.New(fault.SpawnFailed, e.cfg.Server, "configuration", errors.New(e.cfg.Broken))
	}
	if e.cfg.Command != "" {
		said := slog.LevelInfo
		if !e.ownership.reports() {
			said = slog.LevelDebug
		}
		command, err := e.cfg.command(ctx)
		if err != nil {
			return nil, nil, fault.New(fault.SpawnFailed, e.cfg.Server, "secrets", err)
		}
		c, err := wire.StartStdio(ctx, command, e.cfg.MaxMessage, e.cfg.Log, said)
		if err != nil {
			return nil, nil, fault.New(fault.SpawnFailed, e.cfg.Server, "start", err)
		}
		limit.watches(c)
		return e.open(ctx, c, fault.SpawnFailed)
	}
	if e.cfg.Dial != nil {
		t, err := e.cfg.Dial()
		if err != nil {
			return nil, nil, fault.New(fault.Transport, e.cfg.Server, "connect", err)
		}
		return e.openSDK(ctx, t, nil)
	}
	if e.cfg.Transport == options.TransportSSE {
		return e.openSSE(ctx)
	}
	remote, err := e.remote(ctx)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, e.cfg.Server, "secrets", err)
	}
	c, err := wire.NewHTTPConn(ctx, remote)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, e.cfg.Server, "connect", err)
	}
	l, tools, err := e.open(ctx, c, fault.Transport)
	if e.cfg.Transport == options.TransportHTTP || !wire.BeforeStreams(err) {
		return l, tools, err
	}
	l, tools, second := e.openSSE(ctx)
	if second != nil {
		return nil, nil, fault.New(fault.From(e.cfg.Server, "", second).Kind, e.cfg.Server, "connect", fmt.Errorf("%w; and over the older HTTP+SSE: %w", err, second))
	}
	return l, tools, nil
}

func (e *Endpoint) openSSE(ctx context.Context) (*link.Link, *listing.Tools, error) {
	remote, err := e.remote(ctx)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, e.cfg.Server, "secrets", err)
	}
	client, err := wire.NewHTTPClient(remote)
	if err != nil {
		return nil, nil, fault.New(fault.Transport, e.cfg.Server, "connect", err)
	}
	return e.openSDK(ctx, &sdk.SSEClientTransport{Endpoint: e.cfg.URL, HTTPClient: client, MaxEventSize: int(e.cfg.MaxMessage)}, client)
}

func (e *Endpoint) openSDK(ctx context.Context, t sdk.Transport, client *http.Client) (*link.Link, *listing.Tools, error) {
	c, err := wire.DialSDK(ctx, t, e.cfg.MaxMessage)
	if err != nil {
		return nil, nil, fault.New(fault.KindOf(err, fault.Transport), e.cfg.Server, "connect", err)
	}
	c.Client = client
	return e.open(ctx, c, fault.Transport)
}

// open makes a link of a connection, or closes it. otherwise is the kind of a
// fault that says nothing better of itself.
func (e *Endpoint) open(ctx context.Context, c wire.Conn, otherwise fault.Kind) (*link.Link, *listing.Tools, error) {
	l := e.start(ctx, c)
	doing := "handshake"
	protocol := e.cfg.Protocol
	if e.cfg.URL != "" && l.OverHTTP() == nil && protocol != mcp.Stateless {
		protocol = mcp.Revision // the older HTTP+SSE is used with no other revision
	}
	err := l.Agree(ctx, protocol, e.cfg.ConnectTimeout, e.declares(e.ownership.capabilities()))
	var tools *listing.Tools
	if err == nil {
		doing, otherwise = "list tools", fault.Transport
		tools, err = e.ownership.list(ctx, l)
	}
	if err != nil {
		l.Close()
		return nil, nil, fault.New(fault.KindOf(err, otherwise), e.cfg.Server, doing, l.EndOf(err))
	}
	l.Dialect.Listens(ctx)
	e.ownership.opened(ctx, l)
	return l, tools, nil
}

// authorization are the extensions of authorization that the gateway implements. Only servers over
// HTTP take tokens.
var authorization = gate.MustDoc(`{"io.modelcontextprotocol/enterprise-managed-authorization":{},"io.modelcontextprotocol/oauth-client-credentials":{}}`)

// declares returns capabilities of clients with those of the gateway itself: every server
// hears that apps are known, so that it lists the same to all (MCP Apps, "Server Behavior").
func (e *Endpoint) declares(capabilities gate.Doc) gate.Doc {
	extensions := gate.Doc{}
	if e.cfg.URL != "" {
		extensions = authorization
	}
	if !e.cfg.Tools.Apps.Off {
		extensions = extensions.With(apps.Extension, apps.Declared.Get(apps.Extension).Raw())
	}
	if extensions.IsZero() {
		return capabilities
	}
	return capabilities.With("extensions", extensions.Raw())
}

// start begins to receive.
func (e *Endpoint) start(ctx context.Context, c wire.Conn) *link.Link {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := link.New(c, holder{e})
	l.Declares = e.declares(gate.Doc{})
	e.wg.Go(func() {
		defer stop()
		err := l.Run(life)
		e.lost(life, l, err)
		if err := c.Close(); err != nil { // who cannot be spoken with is ended
			e.cfg.Log.Warn("server not ended", "error", err)
		}
	})
	return l
}

// A holder is what a link may ask of its endpoint.
type holder struct{ e *Endpoint }

var _ link.Endpoint = holder{}

func (h holder) ClientInfo() []byte { return h.e.clientInfo }

func (h holder) Ready(ctx context.Context, trial bool) (*link.Link, error) {
	l, _, err := h.e.ready(ctx, trial)
	return l, err
}

func (h holder) Ending() bool {
	phase := h.e.Phase()
	return phase == status.Closing || phase == status.Closed
}

func (h holder) Run(f func()) { h.e.wg.Go(f) }

func (h holder) ListsFeatures() bool { return h.e.ownership.listsFeatures() }

func (h holder) Asker(of *underway.Call, params gate.Doc) *underway.Call {
	return h.e.ownership.asker(of, params)
}

func (h holder) Notified(l *link.Link, method string, params gate.Doc, of *underway.Call) {
	switch method {
	case mcp.MethodProgress:
		if c := h.e.calls.ByToken(params.Get(mcp.MetaProgress)); c != nil {
			c.Progressed(params)
		}
	case mcp.MethodLog:
		h.e.logged(l, params, of)
	case mcp.MethodUpdated:
		h.e.updated(params)
	}
}

// list reads all that the server lists.
func (e *Endpoint) list(ctx context.Context, l *link.Link) (*listing.Tools, error) {
	began, hints := time.Now(), make(map[gate.Feature]link.Hint)
	raw, kept, err := l.List(ctx, "tools/list", "tools")
	if err == nil {
		hints[gate.FeatureTool] = kept
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code == mcp.CodeMethodNotFound {
		err = nil // a server without tools
	}
	if err != nil {
		return nil, err
	}
	tools := e.toolsOf(l, raw)
	if kept.Cut != "" {
		tools.Notes = append(tools.Notes, status.Note{Text: "tools/list: " + kept.Cut})
	}
	if tools.Features, err = e.listFeatures(ctx, l, hints); err != nil {
		return nil, err
	}
	e.readPages(ctx, l, tools)
	e.readSkills(ctx, l, tools.Features, hints)
	l.Dialect.Keeps(began, hints)
	return tools, nil
}

// logged takes a log message of the server. It belongs to the call that the transport names, or
// else to the call that the ownership names.
func (e *Endpoint) logged(l *link.Link, params gate.Doc, of *underway.Call) {
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
