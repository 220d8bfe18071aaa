package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
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

// discovered returns the server's answer to [mcp.MethodDiscover], or why it is none that
// says that it speaks [mcp.Stateless].
func (l *link) discovered(ctx context.Context) (gate.Doc, error) {
	res, err := l.peer.Exchange(ctx, l.worded(asking{method: mcp.MethodDiscover}))
	if err != nil {
		return gate.Doc{}, err
	}
	if res.Get("capabilities").Kind() != gate.Object {
		return gate.Doc{}, &mcp.ProtocolError{Err: errors.New("the answer to " + mcp.MethodDiscover + " says nothing of capabilities")}
	}
	for v := range res.Get("supportedVersions").Elements() {
		if v.Text() == mcp.Stateless {
			return res, nil
		}
	}
	return gate.Doc{}, &mcp.ProtocolError{Err: fmt.Errorf("the server does not speak MCP revision %s", mcp.Stateless)}
}

// speaksModern reports whether a server refuses the revision of a request and names it
// among those that it speaks: such a request is to be made again (MCP 2026-07-28,
// basic/versioning).
func speaksModern(err error) bool {
	rpc, ok := errors.AsType[*wire.RPCError](err)
	if !ok || rpc.Code != mcp.CodeUnsupported {
		return false
	}
	data, err := gate.ParseDoc(rpc.Data)
	if err != nil {
		return false
	}
	for v := range data.Get("supported").Elements() {
		if v.Text() == mcp.Stateless {
			return true
		}
	}
	return false
}

// otherwise returns err, the error of a request to a server of [mcp.Stateless]. If the server
// speaks an older revision by now, the connection ends, so that the next one is of that;
// the request was not looked at then.
func (l *link) otherwise(ctx context.Context, err error) error {
	rpc, spoke := errors.AsType[*wire.RPCError](err)
	switch {
	case spoke && rpc.Code == mcp.CodeHeaderMismatch: // its tools may want others by now
		l.listsChanged()
		return err
	case spoke && rpc.Code == mcp.CodeUnsupported:
	case older(err):
		if _, probe := l.discovered(ctx); probe == nil || ctx.Err() != nil {
			return err
		}
	default:
		return err
	}
	l.peer.Fail(fmt.Errorf("the server does not speak MCP revision %s any more: %w", mcp.Stateless, err))
	return &wire.Unseen{Err: err}
}
