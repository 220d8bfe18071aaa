package host

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
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
	// poll ends the stream of the request, and has the client come back after a while, if it
	// is a stream that a client can come back to.
	poll(after time.Duration)
}

// asks reports whether the client of a request can be asked something in the middle of it.
func (p client) asks() bool { return p.channel != nil && !p.stateless && !p.capabilities.IsZero() }

// requester is the client of a request, as the call that the request makes has it: it is
// asked on the stream of that, while the request is under way.
type requester struct {
	gate.Nobody
	reach   gate.Reach
	request context.Context
	channel channel // nil unless reach says anything
}

// reached returns the client of a request, which servers can ask if it is one that can be
// asked meanwhile.
func (p client) reached(ctx context.Context) *requester {
	r := &requester{request: ctx, channel: p.channel}
	if p.asks() {
		r.reach.Capabilities = p.capabilities
	}
	return r
}

// Reach implements [gate.Client].
func (r *requester) Reach() gate.Reach { return r.reach }

// Approve implements [gate.Client].
func (r *requester) Approve(ctx context.Context, p gate.Pending) (gate.Answer, error) {
	res, err := r.channel.request(ctx, elicit.Method, elicit.Form(p))
	if err != nil {
		return gate.Answer{}, err
	}
	return elicit.Answer(res), nil
}

// Notify implements [gate.Client].
func (r *requester) Notify(ctx context.Context, method string, params gate.Doc) {
	r.channel.notify(ctx, method, params)
}

// Poll implements [gate.Client].
func (r *requester) Poll(after time.Duration) {
	if r.reach.Hears {
		r.channel.poll(after)
	}
}

// Request implements [gate.Client].
func (r *requester) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	on, cancel := context.WithCancel(r.request)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	res, err := r.channel.request(on, string(method), params)
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
		ID: gate.NewID(), Action: action, Name: name, Who: p.who, Groups: p.groups, Session: p.key(), ClientName: p.name, ClientVersion: p.version, Trace: gate.Trace{Header: p.traceparent},
	}
}
