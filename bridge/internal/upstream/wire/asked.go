package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// MaxAsked bounds the requests of a server over one connection that are not answered yet.
	MaxAsked = 16
	// MaxAskedTime bounds how long it waits for one: a person may have to read it.
	MaxAskedTime = 10 * time.Minute
	// DrainTime bounds how long the result of a call waits for what the server said, and for
	// the answers to what it asked, before it.
	DrainTime = 2 * time.Second
)

// codeUnasked is the error that a server gets whose request no client was asked, and
// codeBusy that of one that asks too much at once; both of the range that JSON-RPC 2.0
// leaves to implementations.
const (
	codeUnasked = -32011
	codeBusy    = -32012
)

// ErrUnasked says that there is no client who could be asked: the server asks outside
// of a call, or on a connection that clients share.
var ErrUnasked = errors.New("no client can be asked: no call in progress has a client that supports the request")

// asked is what the server at the other end asks of clients. The zero asked refuses
// everything.
type asked struct {
	// Call returns the call on whose behalf the server asks; nil if there is none. It is
	// given the one whose stream the request came on, or nil, and what it asks.
	Call func(of Call, params gate.Doc) Call

	mu      sync.Mutex
	waiting map[string]context.CancelFunc // by the JSON of the request's id
	passed  int                           // requests that a client was asked
	quiet   chan struct{}                 // closed when none waits any more; nil if nothing waits for that
}

// begin keeps a request until done is called. It is false if there are too many, or
// one has the id already.
func (a *asked) begin(id string, cancel context.CancelFunc) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, twice := a.waiting[id]; twice || len(a.waiting) == MaxAsked {
		return false
	}
	if a.waiting == nil {
		a.waiting = make(map[string]context.CancelFunc)
	}
	a.waiting[id] = cancel
	a.passed++
	return true
}

func (a *asked) done(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
	if len(a.waiting) == 0 && a.quiet != nil {
		close(a.quiet)
		a.quiet = nil
	}
}

// Count returns how many requests a client was asked.
func (a *asked) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.passed
}

// Settled returns what is closed when no request waits for its answer.
func (a *asked) Settled() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.quiet == nil {
		a.quiet = make(chan struct{})
	}
	quiet := a.quiet
	if len(a.waiting) == 0 {
		close(a.quiet)
		a.quiet = nil
	}
	return quiet
}

// cancel ends a request that the server needs no answer to any more.
func (a *asked) cancel(id gate.Doc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if stop := a.waiting[id.String()]; stop != nil {
		stop()
	}
}

// answer answers a server's own request. What it asks of a client goes to the client of
// the call that it asks for; of the gateway itself it can ask whether it lives.
func (p *Peer) answer(method string, id, params gate.Doc, of Call) {
	if len(id.Raw()) > mcp.MaxID || p.Stateless.Load() { // a server of [mcp.Stateless] must ask nothing
		return
	}
	switch {
	case method == "ping":
		p.reply(id, []byte(`,"result":{}`))
	case actions.IsPeerRequest(gate.Action(method)):
		p.passOn(gate.Action(method), id, params, of)
	default:
		p.reply(id, errorMember(mcp.CodeMethodNotFound, "method not found"))
	}
}

// passOn asks the client of a call, and answers the server when it has answered.
func (p *Peer) passOn(method gate.Action, id, params gate.Doc, of Call) {
	var c Call
	if p.Asked.Call != nil {
		c = p.Asked.Call(of, params)
	}
	if c == nil || !c.Hold() {
		p.reply(id, errorMember(codeUnasked, ErrUnasked.Error()))
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), MaxAskedTime)
	if !p.Asked.begin(id.String(), cancel) {
		cancel()
		c.Release()
		p.reply(id, errorMember(codeBusy, "too many requests without an answer"))
		return
	}
	told := c.Told()
	go func() { // ends with ctx, at the latest
		defer c.Release()
		defer cancel()
		defer p.Asked.done(id.String())
		select { // the question may end the stream on which the client gets notifications
		case <-told:
		case <-time.After(DrainTime):
		case <-ctx.Done():
		}
		if params.Kind() != doc.Object {
			params = gate.MustDoc("{}")
		}
		res, err := c.Permit().Request(ctx, method, mcp.WithoutTask(params))
		res = ofTask(res, params.Get("_meta").Get(mcp.MetaRelatedTask))
		if ctx.Err() != nil && c.Context().Err() == nil && err != nil {
			return // the server has cancelled it, and wants no answer
		}
		timed, stop := context.WithTimeout(context.WithoutCancel(ctx), asideTime)
		defer stop()
		_ = p.Conn.Send(timed, response(id, endedBy(res, err)), nil) // if the connection is broken, receive says so
	}()
}

// endedBy returns the member of a response that says how a request has ended. A server gets the
// reason of a refusal, and the client's own error.
func endedBy(res gate.Doc, err error) []byte {
	var refused *gate.Refusal
	var client *mcp.Error
	switch {
	case err == nil:
		return append([]byte(`,"result":`), res.Raw()...)
	case errors.As(err, &refused):
		return errorMember(codeUnasked, "refused: "+refused.Reason)
	case errors.As(err, &client):
		return append([]byte(`,"error":`), client.JSON()...)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errorMember(codeUnasked, "no one answered in time")
	default:
		return errorMember(codeUnasked, "the client did not answer")
	}
}

func errorMember(code int64, message string) []byte {
	return append([]byte(`,"error":`), (&mcp.Error{Code: code, Message: message}).JSON()...)
}

func response(id gate.Doc, outcome []byte) []byte {
	msg := append([]byte(`{"jsonrpc":"2.0","id":`), id.Raw()...)
	return append(append(msg, outcome...), '}')
}

// reply sends a response that is there at once. A server that does not read gets none.
func (p *Peer) reply(id gate.Doc, outcome []byte) {
	select {
	case p.asides <- response(id, outcome):
	default:
	}
}

// ofTask returns what a client has answered as an answer within the server's task, if the
// question named one (MCP 2025-11-25, basic/utilities/tasks, "Associating Task-Related
// Messages").
func ofTask(answer, related gate.Doc) gate.Doc {
	answer = mcp.WithoutTask(answer)
	if answer.IsZero() || related.IsZero() {
		return answer
	}
	return mcp.Stamp(answer, mcp.MetaRelatedTask, related.Raw())
}
