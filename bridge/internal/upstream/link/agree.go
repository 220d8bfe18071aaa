package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// revisions are those that a server may answer with.
var revisions = []string{mcp.Revision, "2025-06-18", "2025-03-26", "2024-11-05"}

// discoverTime bounds how long a server that may be of an older revision is waited
// for: some do not answer a method that they do not know.
const discoverTime = 5 * time.Second

// Agree finds out which revision to speak with the server, and asks what it offers, which depends
// on the capabilities that are declared to it. It takes at most one round trip more than necessary.
// A server over HTTP is first asked for the newer revision, any other for the older one: servers of
// the Go SDK on standard input refuse the handshake after a request of another revision. protocol
// is the only revision to speak; any other value allows both. start bounds the whole start of the
// server.
func (l *Link) Agree(ctx context.Context, protocol string, start time.Duration, capabilities gate.Doc) error {
	switch {
	case protocol == mcp.Stateless:
		return l.discover(ctx)
	case protocol == mcp.Revision:
		return l.handshake(ctx, capabilities)
	case l.OverHTTP() != nil:
		timed, cancel := context.WithTimeout(ctx, min(discoverTime, start/2))
		defer cancel()
		err := l.discover(timed)
		if _, wants := errors.AsType[*wire.Unauthorized](err); err == nil || wants || ctx.Err() != nil || l.Peer.Why() != nil {
			return err
		}
		return bothRefused(l.handshake(ctx, capabilities), err)
	}
	err := l.handshake(ctx, capabilities)
	if _, refused := errors.AsType[*wire.RPCError](err); !refused {
		return err
	}
	second := l.discover(ctx)
	if second == nil {
		return nil
	}
	return bothRefused(err, second)
}

// bothRefused is the error of a server that speaks no revision with us; nil if older
// is. What an older server makes of a method that it does not know says nothing.
func bothRefused(older, newer error) error {
	rpc, ok := errors.AsType[*wire.RPCError](newer)
	if older == nil || !ok || rpc.Code == mcp.CodeMethodNotFound {
		return older
	}
	return fmt.Errorf("%w; and to %s: %w", older, mcp.MethodDiscover, newer)
}

// speak sets the revision of what is sent from now on; "" is none yet.
func (l *Link) speak(revision string) {
	if l.Dialect = (sessions{l}); revision == mcp.Stateless {
		l.Dialect = stateless{l}
	}
	l.Peer.Stateless.Store(revision == mcp.Stateless)
	if h := l.OverHTTP(); h != nil {
		h.Agreed(revision)
	}
}

// discover asks a server what it offers (MCP 2026-07-28, server/discover). The link speaks
// the older revisions after an error.
func (l *Link) discover(ctx context.Context) error {
	l.speak(mcp.Stateless)
	newer := stateless{l}
	res, err := newer.discovered(ctx)
	if speaksStateless(err) {
		res, err = newer.discovered(ctx)
	}
	if err != nil {
		l.speak("")
		return err
	}
	l.Instructions, l.TLSKey, l.Capabilities = res.Get("instructions"), wire.TLSKeyOf(l.Peer.Conn), res.Get("capabilities")
	if l.Server, l.Revision = res.Get("_meta").Get(mcp.MetaServer), mcp.Stateless; l.Server.IsZero() {
		l.Server = res.Get("serverInfo")
	}
	newer.startListening(ctx)
	return nil
}

// handshake initializes the connection (MCP 2025-11-25, basic/lifecycle).
func (l *Link) handshake(ctx context.Context, capabilities gate.Doc) error {
	p := l.Peer
	res, err := p.Call(ctx, "initialize", mcp.MustJSON(map[string]any{
		"protocolVersion": mcp.Revision,
		"capabilities":    json.RawMessage(capabilities.Raw()),
		"clientInfo":      json.RawMessage(l.endpoint.ClientInfo()),
	}))
	if err != nil {
		return err
	}
	revision := res.Get("protocolVersion").Text()
	if !slices.Contains(revisions, revision) {
		return &mcp.ProtocolError{Err: fmt.Errorf("the server speaks MCP revision %q, and the gateway speaks %q", revision, revisions)}
	}
	h, isHTTP := p.Conn.(*wire.HTTPConn)
	if isHTTP {
		h.Agreed(revision)
	}
	if err := p.Tell(ctx, "notifications/initialized", "{}"); err != nil {
		return err
	}
	if isHTTP {
		l.endpoint.Run(h.Listen)
	}
	l.Instructions, l.TLSKey, l.Capabilities = res.Get("instructions"), wire.TLSKeyOf(p.Conn), res.Get("capabilities")
	l.Server, l.Revision = res.Get("serverInfo"), revision
	return nil
}
