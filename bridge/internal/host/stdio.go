package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxUnanswered is how many requests of a client on stdio are answered at one time before
// one that does not read its answers is not read from either.
const maxUnanswered = 256

// Serve serves one client that speaks in lines, such as one on standard input
// and output, until in ends or ctx does. It closes neither.
func (h *Host) Serve(ctx context.Context, who *gate.Principal, in io.Reader, out io.Writer) error {
	c := &lineClient{host: h, out: out, lines: make(chan line), closed: make(chan struct{})}
	c.session = &session{clients: &h.clients, began: time.Now(), pending: pendingRequests{mark: rand.Text()[:8] + "-"}}
	c.session.client = client{who: who, sessionID: gate.NewID(), session: c.session, channel: c}
	c.session.out = outbox{send: c.notify, clean: h.cfg.Clean}
	h.clients.sessions.connect(c.session)
	c.ctx, c.cancel = context.WithCancel(ctx)
	go c.read(in, h.terms.Load().MaxBody) // ends with in, which is the caller's
	err := c.serve(ctx)
	close(c.closed)
	c.cancel()
	c.requests.Wait()
	c.session.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// A lineClient is a client that speaks in lines: one message a line, and one session.
type lineClient struct {
	host    *Host
	session *session
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

var _ channel = (*lineClient)(nil)

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

// take takes a line. The error is that its answer cannot be written.
func (c *lineClient) take(l line) error {
	l.text = bytes.TrimSpace(l.text)
	if len(l.text) == 0 {
		return nil
	}
	msg, no := c.screen(l)
	if no != nil {
		if no.body == nil {
			return nil
		}
		return c.write(no.body)
	}
	m := messageOf(msg)
	why := m.misshapen()
	switch {
	case why != "" && !m.id.IsZero():
		return c.write(refuse(0, m.id.Raw(), mcp.CodeInvalidRequest, why).body)
	case why != "":
	case !m.isRequest():
		c.session.receive(c.session.client, m)
	case m.method == "initialize": // what comes behind it is of the session
		if !c.session.isInitialized() {
			c.session.declared(m.params)
		}
		c.answer(c.ctx, c.session.client, m)
	default:
		return c.begin(m)
	}
	return nil
}

func (c *lineClient) screen(l line) (gate.Doc, *refusal) {
	if l.bad != nil {
		return gate.Doc{}, c.host.unreadable(c.ctx, c.session.client, l.text, l.bad)
	}
	return c.host.screen(c.ctx, c.session.client, l.text)
}

// begin has a request answered while others come.
func (c *lineClient) begin(m message) error {
	ctx, cancel := context.WithCancel(c.ctx)
	if !c.session.begin(m.id, cancel) {
		cancel()
		return c.write(c.host.reply(c.session.client, m, gate.Doc{}, duplicate(m.id)))
	}
	c.unanswered.Add(1)
	p := c.session.client
	c.requests.Go(func() { // ends with the request, which ends with the client
		defer cancel()
		defer c.unanswered.Add(-1)
		growStack(false)
		c.answer(ctx, p, m)
	})
	return nil
}

// answer answers a request.
func (c *lineClient) answer(ctx context.Context, p client, m message) {
	res, err := c.host.respond(ctx, p, m)
	c.session.finish(m.id)
	p.stateless = saysStateless(m.params)
	if c.ctx.Err() == nil { // else nobody reads it
		_ = c.write(c.host.reply(p, m, res, err)) // who has gone is noticed by what it sends
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

// notify implements [channel]. It is also how the client is told what is said outside of its
// requests.
func (c *lineClient) notify(_ context.Context, method string, params gate.Doc) {
	_ = c.write(notification(method, params))
}

// request implements [channel].
func (c *lineClient) request(ctx context.Context, method string, params gate.Doc) (gate.Doc, error) {
	return c.session.pending.request(ctx, func(b []byte) { _ = c.write(b) }, method, params)
}

// poll implements [channel].
func (c *lineClient) poll(time.Duration) {}
