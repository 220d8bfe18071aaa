package host

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxCapabilities bounds what is kept of the capabilities of a client, in bytes: they are
// names of a handful of things.
const maxCapabilities = 16 << 10

// askable returns the capabilities by which servers may ask a client, as it has declared
// them; absent if it has none.
func askable(declared gate.Doc) gate.Doc {
	can := mcp.PeerCapabilities(declared)
	if len(can.Raw()) > maxCapabilities {
		return gate.Doc{}
	}
	return can
}

// A channel is the way to the client of a request, while the request is under way.
type channel interface {
	// notify sends a notification; a client that has gone needs to know nothing.
	notify(ctx context.Context, method string, params gate.Doc)
	// request sends a request of the host and waits for its result: an object, or absent if
	// it was none. The error is the client's, an [*mcp.Error], or the end of ctx.
	request(ctx context.Context, method string, params gate.Doc) (gate.Doc, error)
	// polls returns what ends the stream of the request and has the client come back;
	// nil if it is no stream that a client can come back to.
	polls() func(after time.Duration)
}

// asks reports whether the client of a request can be asked something in the middle of it.
func (p client) asks() bool { return p.channel != nil && !p.stateless && !p.capabilities.IsZero() }

// sessionPeer is the client of a session, which is asked on the stream of its call.
type sessionPeer struct {
	capabilities gate.Doc
	call         context.Context
	channel      channel
}

var _ gate.Peer = sessionPeer{}

// Capabilities implements [gate.Peer].
func (s sessionPeer) Capabilities() gate.Doc { return s.capabilities }

// Request implements [gate.Peer].
func (s sessionPeer) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	on, cancel := context.WithCancel(s.call)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	res, err := s.channel.request(on, string(method), params)
	if ctx.Err() != nil {
		return gate.Doc{}, ctx.Err()
	}
	return res, err
}

// client is who sent a request.
type client struct {
	who           *gate.Principal
	groups        gate.Groups // that it is offered, beside the principal's
	sessionID     string      // "" if the client has none: the principal's own
	name, version string      // as the client claims
	traceparent   string      // of the HTTP request
	stateless     bool        // revision 2026-07-28
	capabilities  gate.Doc    // by which servers may ask it; absent if there are none
	session       *session    // nil if it has none
	channel       channel     // of the request; nil of what is no request
	// listener hears what servers say outside of calls; nil unless it asks about that,
	// and has a session.
	listener *listener
}

func (p client) key() gate.SessionKey { return gate.SessionKey{Owner: p.who.Owner, ID: p.sessionID} }

// complete makes of a result one that asks for nothing, whatever a server has
// put into it: there are clients that ask their person what inputRequests says
// without a look at resultType.
func (p client) complete(res gate.Doc) gate.Doc {
	if !res.Get("inputRequests").IsZero() || !res.Get("requestState").IsZero() {
		res = mcp.Without(res, "inputRequests", "requestState")
	}
	if !p.stateless || res.Get("resultType").Text() == "complete" {
		return res
	}
	return res.With("resultType", []byte(`"complete"`))
}

// answer is what the client gets of a result.
func (p client) answer(res gate.Result) gate.Doc {
	if res.InputRequired {
		return res.Doc
	}
	return p.complete(res.Doc)
}

// call returns a call of the peer.
func (p client) call(action gate.Action, name string) gate.Call {
	return gate.Call{
		ID: gate.NewID(), Action: action, Name: name, Who: p.who, Groups: p.groups, Session: p.key(), ClientName: p.name, ClientVersion: p.version, TraceHeader: p.traceparent,
	}
}

// setNotify has the client hear of its call; nobody does of one that was refused before.
func (p client) setNotify(c *gate.Call) {
	if p.channel != nil {
		c.Notify, c.Poll = p.channel.notify, p.channel.polls()
	}
}
