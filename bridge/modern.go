package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// The values of [EndpointConfig.Protocol] beside [Revision].
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
	case e.cfg.Protocol == Stateless:
		return e.discover(ctx, l)
	case e.cfg.Protocol == Revision || e.cfg.URL != "" && l.overHTTP() == nil:
		return e.handshake(ctx, l)
	case l.overHTTP() != nil:
		timed, cancel := context.WithTimeout(ctx, min(discoverTime, e.cfg.ConnectTimeout/2))
		defer cancel()
		newer := e.discover(timed, l)
		if newer == nil || ctx.Err() != nil || l.peer.why() != nil {
			return newer
		}
		return bothRefused(e.handshake(ctx, l), newer)
	}
	older := e.handshake(ctx, l)
	if _, refused := errors.AsType[*RPCError](older); !refused {
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
	rpc, ok := errors.AsType[*RPCError](newer)
	if older == nil || !ok || rpc.Code == codeMethodNotFound {
		return older
	}
	return fmt.Errorf("%w; and to %s: %w", older, methodDiscover, newer)
}

// discover asks a server of [Stateless] what it offers (MCP 2026-07-28,
// server/discover). The link speaks the older revisions after an error.
func (e *Endpoint) discover(ctx context.Context, l *link) error {
	l.speak(Stateless)
	res, err := l.discovered(ctx)
	if speaksModern(err) {
		res, err = l.discovered(ctx)
	}
	if err != nil {
		l.speak("")
		return err
	}
	l.instructions, l.tlsKey, l.capabilities = res.Get("instructions"), tlsKeyOf(l.peer.conn), res.Get("capabilities")
	e.hear(ctx, l)
	return nil
}

// discovered returns the server's answer to [methodDiscover], or why it is none that
// says that it speaks [Stateless].
func (l *link) discovered(ctx context.Context) (gate.Doc, error) {
	res, err := l.peer.exchange(ctx, l.worded(asking{method: methodDiscover}))
	if err != nil {
		return gate.Doc{}, err
	}
	if res.Get("capabilities").Kind() != gate.Object {
		return gate.Doc{}, &nonsense{errors.New("the answer to " + methodDiscover + " says nothing of capabilities")}
	}
	for v := range res.Get("supportedVersions").Elements() {
		if v.Text() == Stateless {
			return res, nil
		}
	}
	return gate.Doc{}, &nonsense{fmt.Errorf("the server does not speak MCP revision %s", Stateless)}
}

// speaksModern reports whether a server refuses the revision of a request and names it
// among those that it speaks: such a request is to be made again (MCP 2026-07-28,
// basic/versioning).
func speaksModern(err error) bool {
	rpc, ok := errors.AsType[*RPCError](err)
	if !ok || rpc.Code != codeUnsupported {
		return false
	}
	data, err := gate.ParseDoc(rpc.Data)
	if err != nil {
		return false
	}
	for v := range data.Get("supported").Elements() {
		if v.Text() == Stateless {
			return true
		}
	}
	return false
}

// otherwise returns err, the error of a request to a server of [Stateless]. If the server
// speaks an older revision by now, the connection ends, so that the next one is of that;
// the request was not looked at then.
func (l *link) otherwise(ctx context.Context, err error) error {
	rpc, spoke := errors.AsType[*RPCError](err)
	switch {
	case spoke && rpc.Code == codeHeaderMismatch: // its tools may want others by now
		l.listsChanged()
		return err
	case spoke && rpc.Code == codeUnsupported:
	case older(err):
		if _, probe := l.discovered(ctx); probe == nil || ctx.Err() != nil {
			return err
		}
	default:
		return err
	}
	l.peer.fail(fmt.Errorf("the server does not speak MCP revision %s any more: %w", Stateless, err))
	return &unseen{err}
}
