package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

// The values of [Config.Protocol] beside [mcp.Revision].
// ProtocolAuto is the newest revision that the server speaks; one on standard
// input and output is asked for those with a handshake first.
const ProtocolAuto = "auto"

// discoverTime bounds how long a server that may be of an older revision is waited
// for: some do not answer a method that they do not know.
const discoverTime = 5 * time.Second

// agree finds out which revision to speak with the server, and asks what it offers. It
// takes one round trip more than the one that is needed, at most, and a server over HTTP
// is first asked for the newer revision: those of the Go SDK on standard input refuse the
// handshake to whoever has asked for another before.
func (e *Endpoint) agree(ctx context.Context, l *link) error {
	switch {
	case e.cfg.Protocol == mcp.Stateless:
		return e.discover(ctx, l)
	case e.cfg.Protocol == mcp.Revision || e.cfg.URL != "" && l.overHTTP() == nil:
		return e.handshake(ctx, l)
	case l.overHTTP() != nil:
		timed, cancel := context.WithTimeout(ctx, min(discoverTime, e.cfg.ConnectTimeout/2))
		defer cancel()
		newer := e.discover(timed, l)
		if _, wants := errors.AsType[*wire.Unauthorized](newer); newer == nil || wants || ctx.Err() != nil || l.peer.Why() != nil {
			return newer
		}
		return bothRefused(e.handshake(ctx, l), newer)
	}
	older := e.handshake(ctx, l)
	if _, refused := errors.AsType[*wire.RPCError](older); !refused {
		return older
	}
	newer := e.discover(ctx, l)
	if newer == nil {
		return nil
	}
	return bothRefused(older, newer)
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

// discover asks a server of [mcp.Stateless] what it offers (MCP 2026-07-28,
// server/discover). The link speaks the older revisions after an error.
func (e *Endpoint) discover(ctx context.Context, l *link) error {
	l.speak(mcp.Stateless)
	res, err := l.discovered(ctx)
	if speaksModern(err) {
		res, err = l.discovered(ctx)
	}
	if err != nil {
		l.speak("")
		return err
	}
	l.instructions, l.tlsKey, l.capabilities = res.Get("instructions"), wire.TLSKeyOf(l.peer.Conn), res.Get("capabilities")
	if l.server, l.revision = res.Get("_meta").Get(mcp.MetaServer), mcp.Stateless; l.server.IsZero() {
		l.server = res.Get("serverInfo")
	}
	e.hear(ctx, l)
	return nil
}
