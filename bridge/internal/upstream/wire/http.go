package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// ListenAgain is the pause before the stream of a server's own messages is
	// opened again, doubled up to MaxListenAgain.
	ListenAgain    = time.Second
	minListenAgain = 100 * time.Millisecond // whatever the server asks for
	MaxListenAgain = time.Minute
	// openTime bounds how long the first answer to that is waited for; some servers give
	// none before they have something to say.
	openTime = 200 * time.Millisecond
	// streamEnd is how long the end of a stream is waited for after its answer.
	streamEnd = 10 * time.Millisecond
	// sessionEnd is how long the messages under way in a session that the server has
	// ended are waited for.
	sessionEnd = time.Second
)

// SessionEnded is the error of a message to a session that the server has ended. Such
// a message it does not look at (MCP 2025-11-25, basic/transports, "Session
// Management").
type SessionEnded struct{ err error }

func (e *SessionEnded) Error() string { return "the server has ended the session: " + e.err.Error() }
func (e *SessionEnded) Unwrap() error { return e.err }

// HTTPConn speaks streamable HTTP: a POST for each message, whose answer is one
// message or a stream of events, and a GET for what the server says of itself.
type HTTPConn struct {
	request *http.Request // each request is a copy of it
	client  *http.Client
	max     int64 // bytes of a message
	to      func(gate.Doc, int64)
	ending  func(error)
	Polls   func(stream int64, after time.Duration) // is called for streams that end before their answer

	ctx     context.Context // of the connection
	stop    context.CancelFunc
	broken  chan error    // why the connection ended; room for one
	opened  chan struct{} // closed when the first GET was answered
	closing sync.Once

	session, protocol atomic.Pointer[[]string] // as values of headers; nil while there is none

	mu    sync.Mutex
	last  int64
	posts map[int64]context.CancelFunc // of those under way
	idle  chan struct{}                // closed when none is; nil while nothing waits for that
}

// NewHTTPConn returns a connection to a server over HTTP. Nothing is sent before the first
// message.
func NewHTTPConn(ctx context.Context, to Remote) (*HTTPConn, error) {
	client, err := NewHTTPClient(to)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, to.URL, nil)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	return &HTTPConn{
		request: request, client: client, max: to.MaxMessage, posts: make(map[int64]context.CancelFunc),
		ctx: life, stop: stop, broken: make(chan error, 1), opened: make(chan struct{}),
	}, nil
}

// Send posts a message and delivers the answer.
func (c *HTTPConn) Send(ctx context.Context, msg []byte, headers http.Header) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.posted(c.posting(cancel))
	resp, err := c.do(ctx, http.MethodPost, msg, headers)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if s := resp.Header.Get(mcp.HeaderSession); s != "" && only(&c.protocol) != mcp.Stateless && resp.StatusCode/100 == 2 {
		c.session.CompareAndSwap(nil, &[]string{s})
	}
	kind := kindOf(resp)
	id := messageID(msg)
	success := resp.StatusCode/100 == 2
	challenged := resp.Header.Get("WWW-Authenticate") != "" && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden)
	switch {
	case challenged:
		return statusOf(resp)
	case success && id == "":
		return nil // a message without an answer has arrived, whatever is said to it
	case success && kind == "text/event-stream":
		return c.answers(ctx, resp.Body, id, cancel)
	case id != "" && kind == "application/json":
		return c.single(ctx, resp, id)
	case success && kind == "":
		return &mcp.ProtocolError{Err: fmt.Errorf("no answer to the request: %w", statusOf(resp))}
	case success:
		return &mcp.ProtocolError{Err: fmt.Errorf("the answer has Content-Type %q; MCP wants application/json or text/event-stream: %w", resp.Header.Get("Content-Type"), statusOf(resp))}
	default:
		return c.refused(ctx, resp.StatusCode, startOf(resp), gate.Doc{})
	}
}

// posting adds a message to those under way, which end with the connection, until posted.
func (c *HTTPConn) posting(cancel context.CancelFunc) (post int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.posts[c.last] = cancel
	if c.ctx.Err() != nil {
		cancel()
	}
	return c.last
}

func (c *HTTPConn) posted(post int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.posts, post)
	if len(c.posts) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// settle waits, for at most sessionEnd, for the messages under way if the server has
// ended the session: each gets an answer that says that it was not looked at.
func (c *HTTPConn) settle(why error) {
	_, expired := errors.AsType[*SessionEnded](why)
	c.mu.Lock()
	if !expired || len(c.posts) == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(sessionEnd):
	case <-c.ctx.Done():
	}
}

// noSession is how servers say that they do not know a session: 404 (MCP 2025-11-25,
// basic/transports, "Session Management"), but frameworks use other statuses, with words.
var noSession = regexp.MustCompile(`(?i)\b(no|not|un\w+|invalid|missing|expired)\b.{0,40}\bsession|session.{0,60}\b(not|no longer|unknown|invalid|missing|expired|doesn.t)\b`)

// codeNoSession is the error with which the official SDKs' servers say the same.
const codeNoSession = -32001

// refused is the error of a message that the server has answered with a status that is no
// success. It ends the connection if the server says that it does not know the session: then
// it has not looked at the message. Mere words can be those of a tool that was carried out, so
// that the server is asked.
func (c *HTTPConn) refused(ctx context.Context, status int, body string, answer gate.Doc) error {
	err := &StatusError{status, body}
	says := status == http.StatusNotFound || string(answer.At("/error/code").Raw()) == strconv.Itoa(codeNoSession)
	if c.sessionID() == "" || !says && (!noSession.MatchString(body) || c.known(ctx)) {
		return err
	}
	ended := &SessionEnded{err}
	c.fail(ended)
	return &Unseen{ended}
}

// known reports whether the server still knows the session, or cannot be asked.
func (c *HTTPConn) known(ctx context.Context) bool {
	resp, err := c.do(ctx, http.MethodPost, []byte(`{"jsonrpc":"2.0","id":"session","method":"ping"}`), nil)
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	return resp.StatusCode != http.StatusNotFound && (resp.StatusCode/100 == 2 || !noSession.MatchString(startOf(resp)))
}

// single delivers the answer to request id that is one message. Servers send
// JSON-RPC errors with any status: an answer to the request is one, but for the error that
// the session is unknown.
func (c *HTTPConn) single(ctx context.Context, resp *http.Response, id string) error {
	b, err := readBody(resp, c.max+1)
	if err != nil {
		return err
	}
	if int64(len(b)) > c.max {
		rest, _ := io.Copy(io.Discard, io.LimitReader(resp.Body, mcp.MaxSkipped)) // until the call's time is up
		return &mcp.TooLarge{Size: int64(len(b)) + rest, Max: c.max}
	}
	doc, err := parseMessage(bytes.TrimPrefix(b, []byte(byteOrderMark))) // RFC 8259, 8.1: a parser may ignore the mark
	if err == nil && !answers(doc, id) {
		err = &mcp.ProtocolError{Err: errors.New("the answer belongs to another request")}
	}
	unknown := err == nil && string(doc.At("/error/code").Raw()) == strconv.Itoa(codeNoSession) && c.sessionID() != ""
	if resp.StatusCode != http.StatusOK && (err != nil || unknown) {
		return c.refused(ctx, resp.StatusCode, string(b[:min(len(b), maxStatusBody)]), doc)
	}
	if err != nil {
		return err
	}
	c.to(doc, RequestNumber(id))
	return nil
}

// events delivers the messages of a stream until it ends, or has answered the
// request whose id is given; then stop ends it.
func (c *HTTPConn) events(body io.Reader, id string, at *place, stop func()) (answered bool, err error) {
	err = readEvents(body, c.max, at, func(data []byte) (more bool, err error) {
		doc, err := parseMessage(data)
		if err != nil {
			return false, err
		}
		c.to(doc, RequestNumber(id))
		answered = answered || id != "" && answers(doc, id)
		return !answered, nil
	})
	if large, ok := errors.AsType[*mcp.TooLarge](err); ok && id == "" {
		err = &mcp.ProtocolError{Err: large} // no request waits for it, which could be told
	}
	if answered {
		// A body that is read to its end gives its connection back. It ends here,
		// but for servers that keep it open.
		defer time.AfterFunc(streamEnd, stop).Stop()
		_, _ = io.CopyN(io.Discard, body, 1)
	}
	return answered, err
}

// do makes a request with these headers and those of the connection.
func (c *HTTPConn) do(ctx context.Context, method string, msg []byte, headers http.Header) (*http.Response, error) {
	r := c.request.WithContext(ctx)
	r.Method, r.Header = method, make(http.Header, 8)
	if msg != nil {
		r.Header["Content-Type"], r.Header["Accept"] = ofMessages, ofAnswers
		r.GetBody = func() (io.ReadCloser, error) { return bodyOf(msg), nil }
		r.Body = bodyOf(msg)
		r.ContentLength = int64(len(msg))
	} else {
		r.Header["Accept"] = ofStreams
	}
	if session := c.session.Load(); session != nil {
		r.Header[mcp.HeaderSession] = *session
	}
	if protocol := c.protocol.Load(); protocol != nil {
		r.Header[mcp.HeaderProtocol] = *protocol
	}
	maps.Copy(r.Header, headers)
	resp, err := exchange(c.client, r)
	if err == nil {
		return resp, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && ctx.Err() == nil {
		c.fail(err) // there is no server at the address
	}
	return resp, notDialled(err)
}

// A sent is the body of a request.
type sent struct{ bytes.Reader }

func bodyOf(msg []byte) *sent {
	s := new(sent)
	s.Reset(msg)
	return s
}

// Close implements [io.Closer].
func (*sent) Close() error { return nil }

// kindOf returns the media type of an answer.
func kindOf(resp *http.Response) string {
	kind := resp.Header.Get("Content-Type")
	if kind != "application/json" && kind != "text/event-stream" {
		kind, _, _ = mime.ParseMediaType(kind)
	}
	return kind
}

// The values of headers that all requests have. They must not be changed.
var (
	ofMessages = []string{"application/json"}
	ofAnswers  = []string{"application/json, text/event-stream"}
	ofStreams  = []string{"text/event-stream"}
)

// Agreed sets the revision of the protocol that later requests name.
func (c *HTTPConn) Agreed(protocol string) { c.protocol.Store(&[]string{protocol}) }

func (c *HTTPConn) sessionID() string { return only(&c.session) }

// only returns the one value of a header; "" while there is none.
func only(header *atomic.Pointer[[]string]) string {
	if values := header.Load(); values != nil {
		return (*values)[0]
	}
	return ""
}

func (c *HTTPConn) fail(err error) {
	c.ending(err)
	select {
	case c.broken <- err:
	default:
	}
}

func (c *HTTPConn) bind(deliver func(gate.Doc, int64), _ func(string, *mcp.TooLarge), ending func(error)) {
	c.to, c.ending = deliver, ending
}

// receive waits for the end of the connection. Answers come with their
// requests; listen brings the rest.
func (c *HTTPConn) receive() error {
	select {
	case err := <-c.broken:
		return err
	case <-c.ctx.Done():
		return errors.New("the gateway has closed the connection")
	}
}

// Listen keeps the stream of the server's own messages open. Servers without
// one answer 405, and are left alone.
func (c *HTTPConn) Listen() {
	opened := sync.OnceFunc(func() { close(c.opened) })
	defer opened()
	var at place
	before := false // the stream was open
	for pause := ListenAgain; ; pause = min(2*pause, MaxListenAgain) {
		resp, err := c.do(c.ctx, http.MethodGet, nil, at.headers())
		opened()
		if err == nil {
			heard, offered := c.hear(resp, &at, before)
			resp.Body.Close()
			before = before || heard
			if !offered {
				return
			}
			if heard {
				pause = max(at.pause(), minListenAgain)
			}
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return
		}
	}
}

// Listens waits, but not for long, until the server has answered that it is listened to: what it
// says before is lost.
func (c *HTTPConn) Listens(ctx context.Context) {
	select {
	case <-c.opened:
	case <-time.After(openTime):
	case <-ctx.Done():
	}
}

// hear delivers what comes in the answer to a GET. offered tells whether the
// server has such a stream, perhaps at another time; before, whether it had it before. A server
// without it must answer 405, but many routers answer 404 to what they do not serve.
func (c *HTTPConn) hear(resp *http.Response, at *place, before bool) (heard, offered bool) {
	kind := kindOf(resp)
	switch {
	case resp.StatusCode == http.StatusOK && kind == "text/event-stream":
		_, _ = c.events(resp.Body, "", at, nil) // a broken stream is opened again
		return true, true
	case resp.StatusCode == http.StatusNotFound && before:
		_ = c.refused(c.ctx, resp.StatusCode, startOf(resp), gate.Doc{}) // receive says so
		return false, false
	default:
		return false, resp.StatusCode >= 500
	}
}

// Close ends the session at the server, as far as it takes part, and all
// streams.
func (c *HTTPConn) Close() error {
	c.closing.Do(func() {
		if c.sessionID() != "" {
			ctx, cancel := context.WithTimeout(c.ctx, childGrace)
			if resp, err := c.do(ctx, http.MethodDelete, nil, nil); err == nil {
				resp.Body.Close()
			}
			cancel()
		}
		c.stop()
		c.mu.Lock()
		for _, cancel := range c.posts {
			cancel()
		}
		c.mu.Unlock()
		c.client.CloseIdleConnections()
	})
	return nil
}
