package plain_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire/plain"
)

// canned is a connection to a server that answers one request with certain bytes, in pieces
// of a certain size, and then ends the connection.
type canned struct {
	net.Conn // only the methods below are used
	piece    int
	body     string // with which a request ends

	mu      sync.Mutex
	answer  []byte
	request bytes.Buffer
	asked   chan struct{} // closed when the request has come
	closed  chan struct{}
}

func newCanned(answer string, piece int, body string) *canned {
	return &canned{piece: piece, body: body, answer: []byte(answer), asked: make(chan struct{}), closed: make(chan struct{})}
}

func (c *canned) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request.Write(p)
	head, body, ended := strings.Cut(c.request.String(), "\r\n\r\n")
	if ended && head != "" && body == c.body {
		close(c.asked)
	}
	return len(p), nil
}

func (c *canned) Read(p []byte) (int, error) {
	select {
	case <-c.asked:
	case <-c.closed:
		return 0, net.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answer) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.answer[:min(c.piece, len(c.answer))])
	c.answer = c.answer[n:]
	return n, nil
}

// sent is what was sent to the server.
func (c *canned) sent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request.String()
}

func (c *canned) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return nil
}

func (c *canned) SetDeadline(time.Time) error { return nil }

const maxHead = 4 << 10

// transports returns the transport of net/http and the plain client. Both connect to c.
func transports(host string, c net.Conn) (theirs, ours http.RoundTripper) {
	dial := func(context.Context, string, string) (net.Conn, error) { return c, nil }
	return &http.Transport{DialContext: dial, MaxResponseHeaderBytes: maxHead},
		&plain.Client{Host: host, Dial: dial, MaxHead: maxHead, MaxIdle: 1, IdleTime: time.Minute}
}

// outcome makes a request, and returns what comes of it, in words.
func outcome(t http.RoundTripper, r *http.Request) string {
	resp, err := t.RoundTrip(r)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return fmt.Sprintf("%s %s %v %d %v %v %t %v, body %q %v", resp.Status, resp.Proto, resp.Header, resp.ContentLength, resp.TransferEncoding, resp.Close, resp.Uncompressed, resp.Trailer, body, err)
}

func post(tb testing.TB, url, body string) *http.Request {
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
