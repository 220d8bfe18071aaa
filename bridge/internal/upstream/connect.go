package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// maxTools, maxPages and maxListing (bytes) bound the listing of one server.
	maxTools   = 10_000
	maxPages   = 1_000
	maxListing = 64 << 20
)

// connect makes a connection: transport, handshake, first listing. ctx, which is the
// limit's, bounds it. The error is a [*Fault].
func (e *Endpoint) connect(ctx context.Context, limit *startLimit) (*link, *listing.Tools, error) {
	if e.cfg.Broken != "" {
		return nil, nil, &Fault{SpawnFailed, e.cfg.Server, "configuration", errors.New(e.cfg.Broken)}
	}
	if e.cfg.Command != "" {
		said := slog.LevelInfo
		if e.audience != nil { // what every process of a server says is worth one line
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
	if e.cfg.Transport == TransportHTTP || !older(err) {
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
	err := e.agree(ctx, l)
	var tools *listing.Tools
	switch {
	case err == nil && e.audience != nil: // what is offered is what the shared connection lists
		tools = new(listing.Tools)
		if e.cfg.Command != "" {
			doing, otherwise = "list tools", Transport
			l.declared, err = declaredBy(ctx, l)
		}
	case err == nil:
		doing, otherwise = "list tools", Transport
		tools, err = e.list(ctx, l)
	}
	if err != nil {
		l.close()
		return nil, nil, &Fault{kindOf(err, otherwise), e.cfg.Server, doing, l.endOf(err)}
	}
	if h := l.overHTTP(); h != nil && !l.modern() {
		h.Listens(ctx)
	}
	if a := e.audience; a != nil && a.asked() {
		l.greet(ctx)
		if of := e.onBehalf(nil); of != nil && of.call.Detached { // nobody may have answered
			a.owner.mu.Lock()
			a.news = true
			a.owner.mu.Unlock()
		}
	}
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
	l := &link{ended: make(chan struct{}), again: make(chan struct{}, 1), wanted: make(chan struct{}, 1), tuning: make(chan struct{}, 1)}
	l.peer = wire.NewPeer(c, func(method string, params gate.Doc, of wire.Call) {
		switch method {
		case "notifications/tools/list_changed":
			l.listsChanged()
		case "notifications/prompts/list_changed", "notifications/resources/list_changed":
			if e.audience == nil { // what is offered beside tools is what the shared connection lists
				l.listsChanged()
			}
		case mcp.MethodAcknowledged:
			l.listening.acknowledged(params)
		case mcp.MethodCancelled:
			l.listening.ended(params.Get("requestId"))
		case mcp.MethodProgress:
			if c := e.under.byToken(params.Get(mcp.MetaProgress)); c != nil {
				c.progressed(params)
			}
		case mcp.MethodLog:
			e.logged(l, params, callingOf(of))
		case mcp.MethodUpdated:
			e.updated(params)
		}
	})
	l.peer.Asked.Call = func(of wire.Call, params gate.Doc) wire.Call {
		if c := e.asker(callingOf(of), params); c != nil {
			return c
		}
		return nil
	}
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

// handshake initializes the connection (MCP 2025-11-25, basic/lifecycle).
func (e *Endpoint) handshake(ctx context.Context, l *link) error {
	p := l.peer
	res, err := p.Call(ctx, "initialize", mcp.MustJSON(map[string]any{
		"protocolVersion": mcp.Revision,
		"capabilities":    json.RawMessage(e.declares().Raw()),
		"clientInfo":      map[string]string{"name": mcp.ClientName, "version": mcp.Version()},
	}))
	if err != nil {
		return err
	}
	revision := res.Get("protocolVersion").Text()
	if !slices.Contains(revisions, revision) {
		return &mcp.ProtocolError{Err: fmt.Errorf("the server speaks MCP revision %q, which is none of %q", revision, revisions)}
	}
	h, isHTTP := p.Conn.(*wire.HTTPConn)
	if isHTTP {
		h.Agreed(revision)
	}
	if err := p.Tell(ctx, "notifications/initialized", "{}"); err != nil {
		return err
	}
	if isHTTP {
		e.wg.Go(h.Listen)
	}
	l.instructions, l.tlsKey, l.capabilities = res.Get("instructions"), wire.TLSKeyOf(p.Conn), res.Get("capabilities")
	l.server, l.revision = res.Get("serverInfo"), revision
	return nil
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
	e.keeps(l, began, hints)
	return tools, nil
}

// declaredBy returns the digests of the tools that a client's own process declares, by their
// names there.
func declaredBy(ctx context.Context, l *link) (map[string]string, error) {
	raw, _, err := listed(ctx, l, "tools/list", "tools")
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code == mcp.CodeMethodNotFound {
		return nil, nil // a server without tools
	}
	return digests(raw), err
}

func digests(raw []gate.Doc) map[string]string {
	byName := make(map[string]string, len(raw))
	for _, t := range raw {
		byName[t.Get("name").Text()] = t.Digest()
	}
	return byName
}

// declares reports why a tool must not be called in a client's own process: what it declares
// there is not what was listed, and held against the pins. It is asked again before that is
// said, since tools come and go.
func (l *link) declares(ctx context.Context, server string, t *gate.Tool) error {
	l.declaring.Lock()
	defer l.declaring.Unlock()
	if l.declared == nil || t.Feature != gate.FeatureTool || l.declared[t.Local] == t.Digest {
		return nil
	}
	now, err := declaredBy(ctx, l)
	if err != nil {
		return err
	}
	l.declared = now
	switch now[t.Local] {
	case t.Digest:
		return nil
	case "":
		return &Fault{NotConnected, server, "call", errors.New("the client's own process does not have the tool; another call there may add it")}
	}
	return &Fault{Pinned, server, "call", errors.New("the client's own process declares another definition of the tool than the one that was listed")}
}

// listed reads a whole listing, page by page, and for how long it can be kept. member is
// where its results have it.
func listed(ctx context.Context, l *link, method, member string) (raw []gate.Doc, kept hint, err error) {
	size := 0
	params := []byte("{}")
	seen := make(map[string]bool)
	for n := range maxPages {
		page, err := l.ask(ctx, method, params)
		if err != nil {
			return raw, hint{}, err
		}
		kept = kept.with(page, n == 0)
		if size += len(page.Raw()); size > maxListing {
			return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has more than %d bytes", maxListing)}
		}
		if page.Get(member).Kind() != gate.Array {
			return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has no array of %s", member)}
		}
		for t := range page.Get(member).Elements() {
			if raw = append(raw, t); len(raw) > maxTools {
				return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the server lists more than %d %s", maxTools, member)}
			}
		}
		cursor := page.Get("nextCursor")
		if cursor.Kind() != gate.String || cursor.Text() == "" {
			return raw, kept, nil
		}
		if seen[cursor.Text()] {
			return nil, hint{}, &mcp.ProtocolError{Err: errors.New("the listing goes round in circles: a cursor comes twice")}
		}
		seen[cursor.Text()] = true
		params = append(append([]byte(`{"cursor":`), cursor.Raw()...), '}')
	}
	return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has more than %d pages", maxPages)}
}
