package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// A Conn carries JSON-RPC messages between the gateway and one server.
type Conn interface {
	// Send gives msg to the server, with headers of its own where the transport has
	// some; nil are none. It is called concurrently. On a transport where a request has
	// its own answer stream it returns when that ends.
	Send(ctx context.Context, msg []byte, headers http.Header) error
	// bind sets the functions that get what the server sends, in its order, with the stream of the
	// request that it came on: 0 if the transport does not tell. It is called once, before anything
	// else. ending is called if nothing more can be sent over the connection, which may be known
	// before receive returns. Of an answer that is too large to be taken, only the id is given.
	bind(deliver func(msg gate.Doc, stream int64), tooLarge func(id string, err *mcp.TooLarge), ending func(error))
	// receive receives until the connection ends, and says why it did. It is
	// called once.
	receive() error
	// Close ends the connection and frees what it holds. It makes receive return.
	Close() error
}

// A Call is the call of a client that a request carries out. While it is under way
// the server may ask that client something.
type Call interface {
	// Context ends with the call, or with its time.
	Context() context.Context
	Permit() gate.Permit
	// Hold begins something that the server asks of the client, until Release. It is
	// false when the call has ended.
	Hold() bool
	Release()
	// Told returns a channel that is closed when the client has received what the server has said
	// so far.
	Told() <-chan struct{}
}

const (
	// maxAsides bounds the asides that wait to be sent; a server that asks more
	// without reading gets no more answers.
	maxAsides = 16
	// asideTime bounds how long it may take to send one.
	asideTime = 2 * time.Second
)

// Peer is a JSON-RPC peer over a [Conn]: it numbers requests and finds the
// answers. Its fields are set before Run.
type Peer struct {
	Conn   Conn
	notify func(method string, params gate.Doc, of Call) // what the server tells, and in which call if that is known; must not block
	asides chan []byte                                   // answers and cancellations: messages that no caller waits for
	over   chan struct{}                                 // closed with ended
	Asked  asked                                         // what the server asks
	// Stateless says that the server speaks [mcp.Stateless], and wants no answers.
	Stateless atomic.Bool
	Heard     atomic.Int64 // messages of the server

	mu      sync.Mutex
	last    int64
	pending map[int64]pending
	ended   error // why the connection has ended; nil while it has not
	failed  error // of fail
}

// An Answer is what a server has answered a request with: a result, or an [*RPCError], or
// why there is none.
type Answer struct {
	result gate.Doc
	Err    error
}

// pending is a request without an answer, and the call that it carries out; nil for
// those of the gateway's own.
type pending struct {
	answer chan Answer
	of     Call
}

// NewPeer returns a peer over c that receives nothing before [Peer.Run].
func NewPeer(c Conn, notify func(string, gate.Doc, Call)) *Peer {
	p := &Peer{Conn: c, notify: notify, asides: make(chan []byte, maxAsides), over: make(chan struct{}), pending: make(map[int64]pending)}
	c.bind(p.deliver, p.tooLarge, p.end)
	return p
}

// Run receives until the connection ends, and fails what still waits then. The
// error is never nil.
func (p *Peer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { p.sendAsides(ctx) })
	err := p.Conn.receive()
	if err == nil {
		err = errors.New("the server ended the connection")
	}
	p.end(err)
	if c, ok := p.Conn.(*HTTPConn); ok {
		c.settle(err)
	}
	err = p.drop(err)
	cancel()
	wg.Wait()
	return err
}

// Fail ends the connection, because of err.
func (p *Peer) Fail(err error) {
	p.mu.Lock()
	p.failed = err
	p.mu.Unlock()
	p.end(err)
	_ = p.Conn.Close() // run returns then, and its caller closes again
}

// Busy reports whether the server is asked something.
func (p *Peer) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending) > 0
}

// end lets no more requests begin.
func (p *Peer) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = err
		close(p.over)
	}
}

// drop fails the requests that still wait for an answer after the end, and returns why
// it came to that: we know better than what receive says if we ended the connection.
func (p *Peer) drop(received error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = received
	if p.failed != nil {
		p.ended = p.failed
	}
	for id, one := range p.pending {
		one.answer <- Answer{Err: p.ended}
		delete(p.pending, id)
	}
	return p.ended
}

// Why returns why the connection has ended, or nil.
func (p *Peer) Why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Call sends a request and waits for its answer: the result, an [*RPCError], or
// why there is none.
func (p *Peer) Call(ctx context.Context, method string, params []byte) (gate.Doc, error) {
	return p.Exchange(ctx, Request{Method: method, Params: params})
}

// A Request is one request to a server.
type Request struct {
	Of      Call // the call that it carries out; nil for the gateway's own
	Method  string
	Params  []byte      // an object
	Headers http.Header // of its message; nil are none
}

// Exchange is call, of any request.
func (p *Peer) Exchange(ctx context.Context, r Request) (gate.Doc, error) {
	id, ch, err := p.Expect(r.Of)
	if err != nil {
		return gate.Doc{}, err
	}
	defer p.Forget(id)
	msg := append(make([]byte, 0, len(r.Params)+96), `{"jsonrpc":"2.0","id":`...)
	msg = strconv.AppendInt(msg, id, 10)
	msg = append(append(append(msg, `,"method":"`...), r.Method...), `","params":`...)
	msg = append(append(msg, r.Params...), '}')
	if err := p.Conn.Send(ctx, msg, r.Headers); err != nil {
		select {
		case a := <-ch: // the connection's end says more than the failed write
			if a.Err == nil || ctx.Err() == nil {
				return a.result, asUnseen(a.Err, err)
			}
		default:
		}
		if ctx.Err() != nil {
			p.Cancelled(r.Method, id)
		}
		return gate.Doc{}, err
	}
	select {
	case a := <-ch:
		return a.result, a.Err
	case <-ctx.Done():
		p.Cancelled(r.Method, id)
		return gate.Doc{}, ctx.Err()
	}
}

// Expect takes a number for a request that carries out a call; nil for the gateway's own.
// Its answer comes on the channel, until Forget.
func (p *Peer) Expect(of Call) (int64, chan Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return 0, nil, &Unseen{p.ended}
	}
	p.last++
	ch := make(chan Answer, 1)
	p.pending[p.last] = pending{ch, of}
	return p.last, ch, nil
}

// Forget drops a request whose answer is no longer wanted.
func (p *Peer) Forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, id)
}

// Cancelled notifies the server that the caller no longer waits for request id (MCP 2025-11-25,
// basic/utilities/cancellation). It waits only for room: the caller has gone, and a server that
// hangs does not hold it up.
func (p *Peer) Cancelled(method string, id int64) {
	if _, ownStream := p.Conn.(*HTTPConn); method == "initialize" || p.Stateless.Load() && ownStream {
		return // the one request that must not be cancelled; and those whose stream's end says it
	}
	select {
	case p.asides <- notification(mcp.MethodCancelled, `{"requestId":`+strconv.FormatInt(id, 10)+`}`):
	case <-time.After(asideTime):
	case <-p.over:
	}
}

// Tell sends a notification.
func (p *Peer) Tell(ctx context.Context, method, params string) error {
	return p.Conn.Send(ctx, notification(method, params), nil)
}

func notification(method, params string) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// deliver sorts an incoming message: an answer, a notification or a request.
func (p *Peer) deliver(msg gate.Doc, stream int64) {
	p.Heard.Add(1)
	method, id, params := msg.Get("method"), msg.Get("id"), msg.Get("params")
	switch {
	case method.Text() == mcp.MethodCancelled && id.IsZero():
		p.Asked.cancel(params.Get("requestId"))
		p.notify(mcp.MethodCancelled, params, nil)
	case method.Kind() == doc.String && id.IsZero():
		p.notify(method.Text(), params, p.callOn(stream))
	case method.Kind() == doc.String:
		p.answer(method.Text(), id, params, p.callOn(stream))
	default:
		if n, ok := idNumber(id); ok { // else nothing of ours has such an id: an error without one, for example
			p.answered(n, msg)
		}
	}
}

func (p *Peer) answered(n int64, msg gate.Doc) {
	a := Answer{result: msg.Get("result")}
	if e := msg.Get("error"); !e.IsZero() && (e.Kind() != doc.Null || a.result.Kind() == doc.Null) {
		a.Err = ParseRPCError(e)
	} else if a.result.IsZero() {
		a.Err = errMessage
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, ok := p.pending[n]; ok { // else late, twice, or made up: dropped
		one.answer <- a
		delete(p.pending, n)
	}
}

// tooLarge fails the request whose answer was too large to be read.
func (p *Peer) tooLarge(id string, err *mcp.TooLarge) {
	p.Heard.Add(1)
	n := RequestNumber(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, ok := p.pending[n]; ok {
		one.answer <- Answer{Err: err}
		delete(p.pending, n)
	}
}

// ParseRPCError reads the error of a response.
func ParseRPCError(e gate.Doc) *RPCError {
	code, _ := strconv.ParseInt(string(e.Get("code").Raw()), 10, 64)
	return &RPCError{Code: code, Message: e.Get("message").Text(), Data: e.Get("data").Raw()}
}

// Polled passes on that the server has ended the stream of its answer to a request.
func (p *Peer) Polled(stream int64, after time.Duration) {
	if c := p.callOn(stream); c != nil {
		c.Permit().Poll(after)
	}
}

// callOn returns the call whose request has the stream; nil if that is not known.
func (p *Peer) callOn(stream int64) Call {
	if stream == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending[stream].of
}

func (p *Peer) sendAsides(ctx context.Context) {
	for {
		select {
		case msg := <-p.asides:
			timed, cancel := context.WithTimeout(ctx, asideTime)
			_ = p.Conn.Send(timed, msg, nil) // if the connection is broken, receive says so
			cancel()
		case <-ctx.Done():
			return
		}
	}
}

// RPCError is a JSON-RPC error that a server answered with.
type RPCError struct {
	Code    int64
	Message string
	Data    []byte // JSON, or nil
}

func (e *RPCError) Error() string {
	return fmt.Sprintf("server answered error %d: %q", e.Code, e.Message)
}
