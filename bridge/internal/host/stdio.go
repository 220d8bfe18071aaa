package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Serve serves one client that speaks in lines, such as one on standard input
// and output, until in ends or ctx does. It closes neither.
func (h *Host) Serve(ctx context.Context, who *gate.Principal, in io.Reader, out io.Writer) error {
	session := gate.NewID()
	var declared atomic.Pointer[gate.Doc]
	declared.Store(new(gate.Doc))
	t := &lineTransport{out: out, mark: rand.Text()[:8] + "-", lines: make(chan line), closed: make(chan struct{})}
	server := h.newServer("", func(req sdk.Request) peerInfo {
		p := peerInfo{who: who, session: session, capabilities: *declared.Load(), write: t.write}
		p.name, p.version = claimed(req)
		return p
	})
	defer h.servers.add(server)()
	t.screen = func(l line) (gate.Doc, *refusal) {
		p := peerInfo{who: who, session: session}
		if l.bad != nil {
			return gate.Doc{}, h.unreadable(ctx, p, l.text, l.bad)
		}
		msg, no := h.screen(ctx, p, l.text)
		if no == nil && msg.Get("method").Text() == "initialize" {
			can := askable(msg.At("/params/capabilities"))
			declared.Store(&can)
		}
		return msg, no
	}
	defer h.endedSession(gate.SessionKey{Owner: who.Owner, ID: session})
	go t.read(in, h.cfg.MaxBody) // ends with in, which is the caller's
	ss, err := server.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { t.Close() })() // as if in had ended: what is under way is cancelled
	err = ss.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// A line is what a client sent, or its beginning and why it is bad.
type line struct {
	text []byte
	bad  error
}

// lineTransport is an SDK transport and its one connection: a message a line,
// each screened before the SDK sees it.
type lineTransport struct {
	screen func(line) (gate.Doc, *refusal)
	// mark begins the ids of the host's requests. A client may outlive its gateway
	// and be served by the next one; what it answers to the first must not be taken
	// for an answer to the second, which also counts from 1.
	mark   string
	lines  chan line
	failed error // why lines was closed

	mu  sync.Mutex // for whole lines
	out io.Writer

	unanswered atomic.Int64 // requests

	closing sync.Once
	closed  chan struct{}
}

func (t *lineTransport) read(in io.Reader, max int64) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l, err := readMessage(r, max)
		if err != nil {
			t.failed = err
			close(t.lines)
			return
		}
		select {
		case t.lines <- l:
		case <-t.closed:
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

// Connect implements [sdk.Transport].
func (t *lineTransport) Connect(context.Context) (sdk.Connection, error) { return t, nil }

// Read implements [sdk.Connection].
func (t *lineTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	if t.unanswered.Load() > maxUnanswered {
		t.awaitWrite()
	}
	for {
		select {
		case l, ok := <-t.lines:
			if !ok {
				if errors.Is(t.failed, io.EOF) {
					return nil, io.EOF
				}
				return nil, t.failed
			}
			m, no := t.decode(l)
			if no != nil && no.body != nil {
				if err := t.write(no.body); err != nil {
					return nil, err
				}
			}
			if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
				t.unanswered.Add(1)
			}
			if m != nil {
				return m, nil
			}
		case <-t.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// decode reads a line: a message, a refusal of it, or neither if it is empty.
func (t *lineTransport) decode(l line) (jsonrpc.Message, *refusal) {
	l.text = bytes.TrimSpace(l.text)
	if len(l.text) == 0 {
		return nil, nil
	}
	msg, no := t.screen(l)
	if no != nil {
		return nil, no
	}
	m, err := jsonrpc.DecodeMessage(stowTask(stow(msg)))
	if err == nil {
		err = stowMethodLine(m)
	}
	if err != nil {
		return nil, refuse(0, nil, mcp.CodeInvalidRequest, "invalid request")
	}
	if r, ok := m.(*jsonrpc.Response); ok && !t.unmark(r) {
		return nil, nil // the answer to somebody else's request
	}
	return m, nil
}

// marked returns a message of the host with its own ids marked.
func (t *lineTransport) marked(m jsonrpc.Message) (jsonrpc.Message, error) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return m, nil
	}
	out := *r
	if r.Method == mcp.MethodCancelled { // of a request of the host
		params, err := gate.ParseDoc(r.Params)
		if err != nil {
			return nil, err
		}
		out.Params = params.With("requestId", mcp.MustJSON(t.mark+params.Get("requestId").String())).Raw()
	}
	if !r.IsCall() {
		return &out, nil
	}
	var err error
	out.ID, err = jsonrpc.MakeID(fmt.Sprintf("%s%v", t.mark, r.ID.Raw()))
	return &out, err
}

// unmark gives the answer to a request of the host the id that the SDK knows, and
// reports whether it is one.
func (t *lineTransport) unmark(r *jsonrpc.Response) bool {
	id, ok := r.ID.Raw().(string)
	if !ok || !strings.HasPrefix(id, t.mark) {
		return false
	}
	n, err := strconv.ParseInt(id[len(t.mark):], 10, 64)
	if err != nil {
		return false
	}
	r.ID, err = jsonrpc.MakeID(float64(n))
	return err == nil
}

// awaitWrite waits until the line is written that is being written, if one is.
func (t *lineTransport) awaitWrite() {
	t.mu.Lock()
	defer t.mu.Unlock()
}

// Write implements [sdk.Connection].
func (t *lineTransport) Write(ctx context.Context, m jsonrpc.Message) error {
	if _, ok := m.(*jsonrpc.Response); ok {
		defer t.unanswered.Add(-1)
	}
	m, err := t.marked(m)
	if err != nil {
		return err
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return t.write(b)
}

func (t *lineTransport) write(b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.out.Write(append(b, '\n'))
	return err
}

// Close implements [sdk.Connection].
func (t *lineTransport) Close() error {
	t.closing.Do(func() { close(t.closed) })
	return nil
}

// SessionID implements [sdk.Connection].
func (t *lineTransport) SessionID() string { return "" }
