package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/web/hungup"
)

// maxUnanswered is how many requests of a client on stdio are answered at one time before
// one that does not read its answers is not read from either.
const maxUnanswered = 256

// Serve serves one client that speaks in lines, such as one on standard input
// and output, until in ends or ctx does. It closes neither.
func (f *Front) Serve(ctx context.Context, who *gate.Principal, in io.Reader, out io.Writer) error {
	c := &lineClient{front: f, out: out, lines: make(chan line), closed: make(chan struct{})}
	c.session = f.clients.Connect(who, c)
	c.ctx, c.cancel = context.WithCancel(ctx)
	go c.read(in, f.terms.Load().MaxBody) // ends with in, which is the caller's
	err := c.serve(ctx)
	close(c.closed)
	if err == nil && ctx.Err() == nil { // its input ended, after which it may still read
		c.finish()
	}
	c.cancel()
	c.requests.Wait()
	c.session.End()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// A lineClient is a client that speaks in lines: one message a line, and one session.
type lineClient struct {
	front   *Front
	session *sessions.Session
	ctx     context.Context // of its requests
	cancel  context.CancelFunc

	lines  chan line
	failed error // why lines was closed
	closed chan struct{}

	mu  sync.Mutex // for whole lines
	out io.Writer

	unanswered atomic.Int64 // requests
	requests   sync.WaitGroup
}

var _ sessions.Channel = (*lineClient)(nil)

// A line is what a client sent, or its beginning and why it is bad.
type line struct {
	text []byte
	bad  error
}

func (c *lineClient) read(in io.Reader, max int64) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l, err := readMessage(r, max)
		if err != nil {
			c.failed = err
			close(c.lines)
			return
		}
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
	}
}

// readMessage reads a line. One of more than max bytes is read to its end, and
// only its beginning is kept.
func readMessage(r *bufio.Reader, max int64) (line, error) {
	text, err := mcp.ReadLine(r, max)
	var long *mcp.ProtocolError
	if !errors.As(err, &long) {
		return line{text: text}, err
	}
	l := line{bytes.Clone(text[:min(len(text), maxBeginning)]), long}
	if bytes.HasSuffix(text, []byte("\n")) {
		return l, nil
	}
	for {
		_, err := r.ReadSlice('\n')
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line{}, err
		}
	}
}

// maxBeginning bounds what is kept of a line that is too long, in bytes.
const maxBeginning = 4 << 10

// serve takes one line after the other, until there are no more.
func (c *lineClient) serve(ctx context.Context) error {
	for {
		if c.unanswered.Load() > maxUnanswered {
			c.awaitWrite()
		}
		select {
		case l, ok := <-c.lines:
			if !ok && errors.Is(c.failed, io.EOF) {
				return nil
			}
			if !ok {
				return c.failed
			}
			if err := c.take(l); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// finish waits for the answers to what has come, for as long as the terms say and the client reads.
func (c *lineClient) finish() {
	answered := make(chan struct{})
	go func() { // ends with the requests, which are cancelled afterwards
		c.requests.Wait()
		close(answered)
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for giveUp := time.After(c.front.terms.Load().Drain); ; {
		select {
		case <-answered:
			return
		case <-c.ctx.Done():
			return
		case <-look.C:
			if hungup.Is(c.out) {
				return
			}
		case <-giveUp:
			return
		}
	}
}

// lookEvery is how often a client whose input has ended is looked at: one that was killed reads nothing.
const lookEvery = 50 * time.Millisecond

// take takes a line. The error is that its answer cannot be written.
func (c *lineClient) take(l line) error {
	l.text = bytes.TrimSpace(l.text)
	if len(l.text) == 0 {
		return nil
	}
	msg, no := c.screen(l)
	if no != nil {
		if no.Body == nil {
			return nil
		}
		return c.write(no.Body)
	}
	m := message.New(msg)
	why := m.Misshapen()
	switch {
	case why != "" && !m.ID.IsZero():
		return c.write(message.Refuse(0, m.ID.Raw(), mcp.CodeInvalidRequest, why).Body)
	case why != "":
	case !m.IsRequest():
		c.session.Receive(c.session.Client, m)
	case m.Method == "initialize": // what follows it belongs to the session
		if !c.session.IsInitialized() {
			c.session.Declared(m.Params)
		}
		c.answer(c.ctx, c.session.Client, m)
	default:
		return c.begin(m)
	}
	return nil
}

func (c *lineClient) screen(l line) (gate.Doc, *message.Refusal) {
	if l.bad != nil {
		return gate.Doc{}, c.front.dispatch.Unreadable(c.ctx, c.session.Client, l.text, l.bad)
	}
	return c.front.dispatch.Screen(c.ctx, c.session.Client, l.text)
}

// begin has a request answered while others come.
func (c *lineClient) begin(m message.Message) error {
	ctx, cancel := context.WithCancel(c.ctx)
	if !c.session.Begin(m.ID, cancel) {
		cancel()
		return c.write(c.front.dispatch.Reply(c.session.Client, m, gate.Doc{}, message.Duplicate(m.ID)))
	}
	c.unanswered.Add(1)
	p := c.session.Client
	c.requests.Go(func() { // ends with the request, which ends with the client
		defer cancel()
		defer c.unanswered.Add(-1)
		dispatch.GrowStack(false)
		c.answer(ctx, p, m)
	})
	return nil
}

// answer answers a request.
func (c *lineClient) answer(ctx context.Context, p sessions.Client, m message.Message) {
	res, err := c.front.dispatch.Respond(ctx, p, m)
	c.session.Finish(m.ID)
	p.Stateless = message.SaysStateless(m.Params)
	if c.ctx.Err() == nil { // else the client no longer reads
		_ = c.write(c.front.dispatch.Reply(p, m, res, err)) // a client that has gone is noticed by what it sends
	}
}

// awaitWrite waits until the line is written that is being written, if one is.
func (c *lineClient) awaitWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
}

func (c *lineClient) write(b []byte) error {
	b = append(mcp.OneLine(b), '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(b)
	return err
}

// Notify implements [sessions.Channel]. It also carries notifications outside of the client's
// requests.
func (c *lineClient) Notify(_ context.Context, method string, params gate.Doc) {
	_ = c.write(message.Notification(method, params))
}

// Request implements [sessions.Channel].
func (c *lineClient) Request(ctx context.Context, method string, params gate.Doc) (gate.Doc, error) {
	return c.session.Ask(ctx, func(b []byte) { _ = c.write(b) }, method, params)
}

// Poll implements [sessions.Channel].
func (c *lineClient) Poll(time.Duration) {}
