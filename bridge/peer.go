package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// conn carries JSON-RPC messages between the gateway and one server.
type conn interface {
	// send gives msg to the server, with headers of its own where the transport has
	// some; nil are none. It is called concurrently. On a transport where a request has
	// its own answer stream it returns when that ends.
	send(ctx context.Context, msg []byte, headers http.Header) error
	// bind says who gets what the server sends, in its order, and on the stream of which
	// request: 0 if the transport does not tell. It is called once, before anything else.
	// Ending is told of a connection that nothing more can be sent over, which may be
	// known before receive returns.
	bind(deliver func(msg gate.Doc, stream int64), ending func(error))
	// receive receives until the connection ends, and says why it did. It is
	// called once.
	receive() error
	// close ends the connection and frees what it holds. It makes receive return.
	close() error
}

// JSON-RPC error codes (JSON-RPC 2.0, section 5.1).

// A clientCall is the call of a client that a request carries out. While it is under way
// the server may ask that client something.
type clientCall interface {
	// Context ends with the call, or with its time.
	Context() context.Context
	Permit() gate.Permit
	// Hold begins something that the server asks of the client, until Release. It is
	// false when the call has ended.
	Hold() bool
	Release()
	// Told returns what is closed when the client has been told what the server has said
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

// errMessage is the fault of a server that breaks JSON-RPC.
var errMessage = errors.New("the server sent a message that is no JSON-RPC 2.0")

// peer is a JSON-RPC peer over a conn: it numbers requests and finds the
// answers. Its fields are set before run.
type peer struct {
	conn   conn
	notify func(method string, params gate.Doc, of clientCall) // what the server tells, and in which call if that is known; must not block
	asides chan []byte                                         // answers and cancellations: messages that nobody waits for
	over   chan struct{}                                       // closed with ended
	asked  asked                                               // what the server asks
	// stateless says that the server speaks [Stateless], and wants no answers.
	stateless atomic.Bool
	heard     atomic.Int64 // messages of the server

	mu      sync.Mutex
	last    int64
	pending map[int64]pending
	ended   error // why the connection has ended; nil while it has not
	failed  error // of fail
}

type answer struct {
	result gate.Doc
	err    error
}

// pending is a request without an answer, and the call that it carries out; nil for
// those of the gateway's own.
type pending struct {
	answer chan answer
	of     clientCall
}

func newPeer(c conn, notify func(string, gate.Doc, clientCall)) *peer {
	p := &peer{conn: c, notify: notify, asides: make(chan []byte, maxAsides), over: make(chan struct{}), pending: make(map[int64]pending)}
	c.bind(p.deliver, p.end)
	return p
}

// run receives until the connection ends, and fails what still waits then. The
// error is never nil.
func (p *peer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { p.sendAsides(ctx) })
	err := p.conn.receive()
	if err == nil {
		err = errors.New("the server ended the connection")
	}
	p.end(err)
	if c, ok := p.conn.(*httpConn); ok {
		c.settle(err)
	}
	err = p.drop(err)
	cancel()
	wg.Wait()
	return err
}

// fail ends the connection, because of err.
func (p *peer) fail(err error) {
	p.mu.Lock()
	p.failed = err
	p.mu.Unlock()
	p.end(err)
	_ = p.conn.close() // run returns then, and whoever runs it closes again
}

// busy reports whether the server is asked something.
func (p *peer) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending) > 0
}

// end lets no more requests begin.
func (p *peer) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = err
		close(p.over)
	}
}

// drop fails the requests that still wait for an answer after the end, and returns why
// it came to that: we know better than what receive says if we ended the connection.
func (p *peer) drop(received error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = received
	if p.failed != nil {
		p.ended = p.failed
	}
	for id, one := range p.pending {
		one.answer <- answer{err: p.ended}
		delete(p.pending, id)
	}
	return p.ended
}

// why returns why the connection has ended, or nil.
func (p *peer) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// call sends a request and waits for its answer: the result, an [*RPCError], or
// why there is none.
func (p *peer) call(ctx context.Context, method string, params []byte) (gate.Doc, error) {
	return p.exchange(ctx, request{method: method, params: params})
}

// A request is what a server is asked in one message.
type request struct {
	of      clientCall // the call that it carries out; nil for the gateway's own
	method  string
	params  []byte      // an object
	headers http.Header // of its message; nil are none
}

// exchange is call, of any request.
func (p *peer) exchange(ctx context.Context, r request) (gate.Doc, error) {
	id, ch, err := p.expect(r.of)
	if err != nil {
		return gate.Doc{}, err
	}
	defer p.forget(id)
	msg := append(make([]byte, 0, len(r.params)+96), `{"jsonrpc":"2.0","id":`...)
	msg = strconv.AppendInt(msg, id, 10)
	msg = append(append(append(msg, `,"method":"`...), r.method...), `","params":`...)
	msg = append(append(msg, r.params...), '}')
	if err := p.conn.send(ctx, msg, r.headers); err != nil {
		select {
		case a := <-ch: // the connection's end says more than the failed write
			if a.err == nil || ctx.Err() == nil {
				return a.result, asUnseen(a.err, err)
			}
		default:
		}
		if ctx.Err() != nil {
			p.cancelled(r.method, id)
		}
		return gate.Doc{}, err
	}
	select {
	case a := <-ch:
		return a.result, a.err
	case <-ctx.Done():
		p.cancelled(r.method, id)
		return gate.Doc{}, ctx.Err()
	}
}

func (p *peer) expect(of clientCall) (int64, chan answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return 0, nil, &unseen{p.ended}
	}
	p.last++
	ch := make(chan answer, 1)
	p.pending[p.last] = pending{ch, of}
	return p.last, ch, nil
}

func (p *peer) forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, id)
}

// cancelled tells the server that nobody waits for request id any more
// (MCP 2025-11-25, basic/utilities/cancellation). It waits for room alone: the
// caller has gone, and a server that hangs does not hold it up.
func (p *peer) cancelled(method string, id int64) {
	if _, ownStream := p.conn.(*httpConn); method == "initialize" || p.stateless.Load() && ownStream {
		return // the one request that must not be cancelled; and those whose stream's end says it
	}
	select {
	case p.asides <- notification(methodCancelled, `{"requestId":`+strconv.FormatInt(id, 10)+`}`):
	case <-time.After(asideTime):
	case <-p.over:
	}
}

// tell sends a notification.
func (p *peer) tell(ctx context.Context, method, params string) error {
	return p.conn.send(ctx, notification(method, params), nil)
}

func notification(method, params string) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// deliver sorts an incoming message: an answer, a notification or a request.
func (p *peer) deliver(msg gate.Doc, stream int64) {
	p.heard.Add(1)
	method, id, params := msg.Get("method"), msg.Get("id"), msg.Get("params")
	switch {
	case method.Text() == methodCancelled && id.IsZero():
		p.asked.cancel(params.Get("requestId"))
		p.notify(methodCancelled, params, nil)
	case method.Kind() == gate.String && id.IsZero():
		p.notify(method.Text(), params, p.callOn(stream))
	case method.Kind() == gate.String:
		p.answer(method.Text(), id, params, p.callOn(stream))
	case id.Kind() == gate.Number:
		p.answered(id, msg)
	case id.Kind() == gate.Null || id.IsZero():
		// an error without an id answers nothing that we could find
	}
}

func (p *peer) answered(id, msg gate.Doc) {
	n, err := strconv.ParseInt(string(id.Raw()), 10, 64)
	if err != nil {
		return // nothing of ours has such a number
	}
	a := answer{result: msg.Get("result")}
	if e := msg.Get("error"); !e.IsZero() {
		a.err = rpcErrorOf(e)
	} else if a.result.IsZero() {
		a.err = errMessage
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, ok := p.pending[n]; ok { // else late, twice, or made up: dropped
		one.answer <- a
		delete(p.pending, n)
	}
}

// rpcErrorOf reads the error of a response.
func rpcErrorOf(e gate.Doc) *RPCError {
	code, _ := strconv.ParseInt(string(e.Get("code").Raw()), 10, 64)
	return &RPCError{Code: code, Message: e.Get("message").Text(), Data: e.Get("data").Raw()}
}

// polled passes on that the server has ended the stream of its answer to a request.
func (p *peer) polled(stream int64, after time.Duration) {
	if c := p.callOn(stream); c != nil {
		c.Permit().Poll(after)
	}
}

// callOn returns the call whose request has the stream; nil if that is not known.
func (p *peer) callOn(stream int64) clientCall {
	if stream == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending[stream].of
}

func (p *peer) sendAsides(ctx context.Context) {
	for {
		select {
		case msg := <-p.asides:
			timed, cancel := context.WithTimeout(ctx, asideTime)
			_ = p.conn.send(timed, msg, nil) // if the connection is broken, receive says so
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
