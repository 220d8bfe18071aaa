package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	older = "2025-11-25"
	newer = "2026-07-28"
)

// words is what a call carries: about half a kilobyte of prose.
var words = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 11)

// load makes calls of one tool, from several clients at once. It writes its requests by
// hand, and of the answers reads only what tells that they are right.
type load struct {
	revision, tool string
	text           string // of each call
	gives          int    // how many bytes the text asks for; 0: the text itself comes back
	progress       bool   // each call has a token for progress
	refused        bool   // no call is carried out
	clients        []caller
	next           atomic.Int64
}

// A caller sends a message, and returns the answer.
type caller interface {
	exchange(ctx context.Context, tool, message string) ([]byte, error)
}

// newLoad returns clients that have shaken hands, if those of their revision do.
func newLoad(tb testing.TB, revision, tool string, clients ...caller) *load {
	for _, c := range clients {
		shakeHands(tb, c, revision, "{}")
	}
	return &load{revision: revision, tool: tool, text: words, clients: clients}
}

// shakeHands has a client declare its capabilities, if its revision has a handshake.
func shakeHands(tb testing.TB, c caller, revision, capabilities string) {
	if revision == newer {
		return
	}
	answer, err := c.exchange(tb.Context(), "", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+
		`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"load","version":"1"}}}`, revision, capabilities))
	if err != nil || !bytes.Contains(answer, []byte(`"protocolVersion":"`+revision+`"`)) {
		tb.Fatalf("initialize: %s, %v", answer, err)
	}
	if _, err := c.exchange(tb.Context(), "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		tb.Fatal(err)
	}
}

// run has the clients make so many calls, and returns how long each took.
func (l *load) run(tb testing.TB, calls int) []time.Duration {
	tb.Helper()
	took := make([]time.Duration, calls)
	var at atomic.Int64
	var wg sync.WaitGroup
	for _, c := range l.clients {
		wg.Go(func() {
			for i := at.Add(1); i <= int64(calls); i = at.Add(1) {
				start := time.Now()
				if err := l.call(tb.Context(), c); err != nil {
					tb.Errorf("%s, call %d: %v", l.tool, i, err)
					return
				}
				took[i-1] = time.Since(start)
			}
		})
	}
	wg.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
	return took
}

// metaNewer is what each call of a revision without sessions carries.
const metaNewer = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`

func (l *load) call(ctx context.Context, c caller) error {
	n, meta := l.next.Add(1), ""
	switch {
	case l.revision == newer:
		meta = metaNewer
	case l.progress:
		meta = fmt.Sprintf(`"_meta":{"progressToken":%d},`, n)
	}
	answer, err := c.exchange(ctx, l.tool, fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s"name":%q,"arguments":{"text":%q,"tags":["a","b"],"n":%d}}}`, n, meta, l.tool, l.text, n))
	if err != nil {
		return fmt.Errorf("%.200s: %w", answer, err)
	}
	want := fmt.Appendf(nil, `"structuredContent":{"text":%q,"n":%d}`, l.text, n)
	if l.refused {
		want = []byte(`"error":{"code":-32602`)
	}
	if l.gives > 0 {
		if want = fmt.Appendf(nil, `,"n":%d}`, n); len(answer) < 2*l.gives { // text and structured content
			return fmt.Errorf("an answer of %d bytes to call %d, which asks for %d", len(answer), n, l.gives)
		}
	}
	if !bytes.Contains(answer, want) {
		return fmt.Errorf("the answer has no structured content of call %d: %.300s", n, answer)
	}
	return nil
}

// An httpClient has a session of its own, if its revision has sessions.
type httpClient struct {
	http                   *http.Client
	url, revision, session string
}

// newHTTPClients returns clients that share a pool of connections.
func newHTTPClients(tb testing.TB, url, revision string, n int) []caller {
	transport := &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}
	tb.Cleanup(transport.CloseIdleConnections)
	shared := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	var all []caller
	for range n {
		c := &httpClient{http: shared, url: url, revision: revision}
		tb.Cleanup(func() { c.end(tb) })
		all = append(all, c)
	}
	return all
}

func (c *httpClient) exchange(ctx context.Context, tool, message string) ([]byte, error) {
	resp, err := c.send(ctx, http.MethodPost, tool, message)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("HTTP %s", resp.Status)
	}
	if c.session == "" && c.revision != newer {
		c.session = resp.Header.Get("Mcp-Session-Id")
	}
	return answer, err
}

func (c *httpClient) send(ctx context.Context, method, tool, message string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {c.revision}}
	if c.session != "" {
		r.Header["Mcp-Session-Id"] = []string{c.session}
	}
	if c.revision == newer {
		r.Header["Mcp-Method"], r.Header["Mcp-Name"] = []string{"tools/call"}, []string{tool}
	}
	return c.http.Do(r)
}

// end ends the client's session, which is the gateway's burden for as long as it lasts.
func (c *httpClient) end(tb testing.TB) {
	if c.session == "" {
		return
	}
	resp, err := c.send(context.WithoutCancel(tb.Context()), http.MethodDelete, "", "")
	if err != nil {
		tb.Error(err)
		return
	}
	resp.Body.Close()
}

// A lineClient has a server on stdio of its own.
type lineClient struct {
	in  io.Writer
	out *bufio.Reader
}

func (c *lineClient) exchange(_ context.Context, _, message string) ([]byte, error) {
	if _, err := io.WriteString(c.in, message+"\n"); err != nil {
		return nil, err
	}
	if !strings.Contains(message, `"id":`) {
		return nil, nil // a notification
	}
	answer, err := c.out.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return answer, err
}
