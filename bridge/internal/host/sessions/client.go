package sessions

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

// Asks reports whether the client of a request can be asked something in the middle of it.
func (p Client) Asks() bool { return p.Channel != nil && !p.Stateless && !p.Capabilities.IsZero() }

// A Requester is the client of a request, as the call that the request makes has it: it is
// asked on the stream of that, while the request is under way.
type Requester struct {
	gate.Nobody
	Can     gate.Reach // what may be asked of it and said to it
	request context.Context
	channel Channel // nil unless Can says anything
}

// Reached returns the client of a request, which servers can ask if it is one that can be
// asked meanwhile.
func (p Client) Reached(ctx context.Context) *Requester {
	r := &Requester{request: ctx, channel: p.Channel}
	if p.Asks() {
		r.Can.Capabilities = p.Capabilities
	}
	return r
}

// Reach implements [gate.Client].
func (r *Requester) Reach() gate.Reach { return r.Can }

// Approve implements [gate.Client].
func (r *Requester) Approve(ctx context.Context, p gate.Pending) (gate.Answer, error) {
	res, err := r.channel.Request(ctx, elicit.Method, elicit.Form(p))
	if err != nil {
		return gate.Answer{}, err
	}
	return elicit.Answer(res), nil
}

// Notify implements [gate.Client].
func (r *Requester) Notify(ctx context.Context, method string, params gate.Doc) {
	r.channel.Notify(ctx, method, params)
}

// Poll implements [gate.Client].
func (r *Requester) Poll(after time.Duration) {
	if r.Can.Hears {
		r.channel.Poll(after)
	}
}

// Request implements [gate.Client].
func (r *Requester) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	on, cancel := context.WithCancel(r.request)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	res, err := r.channel.Request(on, string(method), params)
	if ctx.Err() != nil {
		return gate.Doc{}, ctx.Err()
	}
	return res, err
}

// Complete makes of a result one that asks for nothing, whatever a server has
// put into it: there are clients that ask their person what inputRequests says
// without a look at resultType.
func (p Client) Complete(res gate.Doc) gate.Doc {
	if !res.Get("inputRequests").IsZero() || !res.Get("requestState").IsZero() {
		res = mcp.Without(res, "inputRequests", "requestState")
	}
	if !p.Stateless || res.Get("resultType").Text() == "complete" {
		return res
	}
	return res.With("resultType", []byte(`"complete"`))
}

// Answer is what the client gets of a result.
func (p Client) Answer(res gate.Result) gate.Doc {
	if res.InputRequired {
		return res.Doc
	}
	return p.Complete(res.Doc)
}

// Call returns a call of the client.
func (p Client) Call(action gate.Action, name string) gate.Call {
	return gate.Call{
		ID: gate.NewID(), Action: action, Name: name, Who: p.Who, Revocations: p.Revocations, Groups: p.Groups, Session: p.Key(), ClientName: p.Name, ClientVersion: p.Version, Trace: tracing.Context{Header: p.Traceparent},
		Renders: p.Renders,
	}
}
