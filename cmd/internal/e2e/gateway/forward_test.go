//go:build unix

package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// An asker is a server whose tools ask the client, or wait.
type asker struct {
	began   chan struct{} // a call waits
	ended   chan struct{} // the client has ended it
	release chan struct{} // lets a call ask that waits
}

func newAsker() *asker {
	return &asker{began: make(chan struct{}, 9), ended: make(chan struct{}, 9), release: make(chan struct{})}
}

func (a *asker) start(t *testing.T) string {
	s := mcp.NewServer(&mcp.Implementation{Name: "asker", Version: "1"}, nil)
	ask := func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("hello ", res.Content["name"])}}}, nil
	}
	tool := func(name string, do mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, do)
	}
	tool("ask", ask)
	tool("later", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a.began <- struct{}{}
		select {
		case <-a.release:
			return ask(ctx, r)
		case <-ctx.Done():
			a.ended <- struct{}{}
			return nil, ctx.Err()
		}
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL
}

// bearer sends a key with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects a client of the SDK whose person says that her name is Ada.
func (c *cluster) connect(t *testing.T, url, key, revision string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
	}})
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(key)}}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A reply is the answer to a request, whose body may still come.
type reply struct {
	*http.Response
	t *testing.T
}

// send sends a request of a session, or with headers of its own.
func (c *cluster) send(t *testing.T, method, url, key, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return reply{resp, t}
}

// all returns the body of a reply.
func (r reply) all() string {
	r.t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// event returns the id and the data of the next event that has data.
func (r reply) event() (id, data string) {
	r.t.Helper()
	for line := ""; ; {
		var b [1]byte
		if _, err := io.ReadFull(r.Body, b[:]); err != nil {
			r.t.Fatalf("the stream ends after id %q: %v", id, err)
		}
		if b[0] != '\n' {
			line += string(b[:])
			continue
		}
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok && v != "" {
			return id, v
		}
		line = ""
	}
}

const (
	legacyInitialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}`
	legacyRevision   = "2025-11-25"
)

// open opens a session at a gateway, and returns its id.
func (c *cluster) open(t *testing.T, url, key string) string {
	t.Helper()
	id := c.send(t, http.MethodPost, url, key, legacyInitialize).Header.Get("Mcp-Session-Id")
	if r := c.send(t, http.MethodPost, url, key, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id); r.StatusCode != http.StatusAccepted {
		t.Fatalf("session %q does not begin: %s", id, r.Status)
	}
	return id
}

// sessions: what a client begins at one gateway goes on at any other.
func (c *cluster) sessions(t *testing.T) {
	_, erin := c.key(t, 0, "alice")
	for _, revision := range []string{legacyRevision, "2026-07-28"} {
		s := c.connect(t, c.any, erin, revision)
		for range 4 {
			if tools, err := s.ListTools(t.Context(), nil); err != nil || len(tools.Tools) < 4 {
				t.Fatalf("%s: tools %+v, %v", revision, tools, err)
			}
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "asker__ask"})
			if err != nil || e2e.FirstText(res) != "hello Ada" {
				t.Fatalf("%s: asked %+v, %v", revision, res, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "asker__later"})
			called <- err
		}()
		<-c.asker.began
		cancel()
		<-c.asker.ended
		if err := <-called; err == nil {
			t.Errorf("%s: a cancelled call succeeds", revision)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
	c.streams(t)
}

// streams: a stream that is lost at one gateway is taken up at another, and a session is ended at any.
func (c *cluster) streams(t *testing.T) {
	for at := range c.urls {
		key := c.token(t, rand.Text(), rand.Text()) // whose home will be there
		second, third := c.urls[(at+1)%3], c.urls[(at+2)%3]
		id := c.open(t, c.urls[at], key)
		if !strings.Contains(id, fmt.Sprintf("n%d~", at)) {
			t.Fatalf("the id %q does not name its gateway", id)
		}
		session := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", legacyRevision}
		standing := c.send(t, http.MethodGet, second, key, "", session...)
		if standing.StatusCode != http.StatusOK || standing.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("a standing stream at another gateway: %s", standing.Status)
		}
		call := c.send(t, http.MethodPost, second, key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asker__ask","arguments":{}}}`, session...)
		last, question := call.event()
		for !strings.Contains(question, "elicitation/create") { // it may begin with an event without a message
			last, question = call.event()
		}
		call.Body.Close() // the connection is lost
		var asked struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(question), &asked); err != nil {
			t.Fatal(err)
		}
		again := c.send(t, http.MethodGet, third, key, "", append([]string{"Last-Event-Id", last}, session...)...)
		if again.StatusCode != http.StatusOK {
			t.Fatalf("a stream is not taken up: %s %s", again.Status, again.all())
		}
		answer := c.send(t, http.MethodPost, second, key, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"Eve"}}}`, asked.ID), session...)
		if answer.StatusCode != http.StatusAccepted {
			t.Errorf("an answer at another gateway: %s", answer.Status)
		}
		if _, result := again.event(); !strings.Contains(result, "hello Eve") {
			t.Errorf("the answer in a stream that was taken up: %s", result)
		}
		// Of others the session is at no gateway.
		_, other := c.key(t, 0, "bob")
		if r := c.send(t, http.MethodPost, third, other, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, session...); r.StatusCode != http.StatusNotFound {
			t.Errorf("another principal's request: %s", r.Status)
		}
		if r := c.send(t, http.MethodPost, third, "unknown", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, session...); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("a request of no principal: %s", r.Status)
		}
		if r := c.send(t, http.MethodDelete, third, key, "", session...); r.StatusCode != http.StatusNoContent {
			t.Errorf("ended at another gateway: %s", r.Status)
		}
		for _, url := range c.urls {
			if r := c.send(t, http.MethodPost, url, key, `{"jsonrpc":"2.0","id":3,"method":"ping"}`, session...); r.StatusCode != http.StatusNotFound {
				t.Errorf("a session that has ended: %s", r.Status)
			}
		}
	}
}

// tasks: a call that has become a task, in both revisions, is asked for, answered and cancelled anywhere.
func (c *cluster) tasks(t *testing.T) {
	_, key := c.key(t, 0, "alice")
	var n atomic.Int64
	stateless := func(method, name, params string) string {
		t.Helper()
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
		return c.send(t, http.MethodPost, c.any, key, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, n.Add(1), method, params, meta),
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name).all()
	}
	taskOf := func(answer string) string {
		t.Helper()
		_, rest, _ := strings.Cut(answer, `"taskId":"`)
		id, _, found := strings.Cut(rest, `"`)
		if !found {
			t.Fatalf("no task: %s", answer)
		}
		return id
	}
	id := taskOf(stateless("tools/call", "asker__later", `"name":"asker__later","arguments":{}`)) // after 10 s
	<-c.asker.began
	for range 3 {
		if got := stateless("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id)); !strings.Contains(got, `"working"`) {
			t.Errorf("a task that goes on: %s", got)
		}
	}
	c.asker.release <- struct{}{}
	for range 3 { // at each gateway
		var got string
		timelimit.Wait(t, "the task asks", func() bool {
			got = stateless("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
			return strings.Contains(got, `"input_required"`)
		})
		if !strings.Contains(got, "who?") {
			t.Errorf("a task asks %s", got)
		}
	}
	var asks struct {
		Result struct{ InputRequests map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(message(stateless("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id)))), &asks); err != nil {
		t.Fatal(err)
	}
	for name := range asks.Result.InputRequests {
		stateless("tasks/update", id, fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Tim"}}}`, id, name))
	}
	timelimit.Wait(t, "the task ends", func() bool {
		return strings.Contains(stateless("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id)), "hello Tim")
	})

	session := c.open(t, c.any, key)
	legacy := func(method, params string) string {
		t.Helper()
		return c.send(t, http.MethodPost, c.any, key, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, n.Add(1), method, params), "Mcp-Session-Id", session, "Mcp-Protocol-Version", legacyRevision).all()
	}
	id = taskOf(legacy("tools/call", `"name":"asker__later","arguments":{},"task":{"ttl":60000}`))
	<-c.asker.began
	for range 3 {
		if got := legacy("tasks/get", fmt.Sprintf(`"taskId":%q`, id)); !strings.Contains(got, `"working"`) {
			t.Errorf("a task that goes on: %s", got)
		}
	}
	if got := legacy("tasks/cancel", fmt.Sprintf(`"taskId":%q`, id)); !strings.Contains(got, `"cancelled"`) {
		t.Errorf("a task that was cancelled: %s", got)
	}
	<-c.asker.ended
}

// message returns the last message of an answer, which may be a stream.
func message(answer string) string {
	if i := strings.LastIndex(answer, "data: {"); i >= 0 {
		return strings.TrimSpace(answer[i+len("data: "):])
	}
	return answer
}

// toBob is a call to an address that a trusted result has named, and toEvil one to another.
const (
	toBob  = `{"to":"bob@corp.example"}`
	toEvil = `{"to":"evil@attacker.example"}`
)

// values: which values a session has met, and where, holds at any gateway.
func (c *cluster) values(t *testing.T, n int) {
	for i := range n {
		w := c.client(c.any, c.token(t, fmt.Sprint("v", i), fmt.Sprint("v", i)))
		for _, step := range []struct {
			tool, args string
			want       bool
		}{{"own__find", `{}`, true}, {"own__read_web", `{}`, true}, {"own__send", toEvil, false}, {"own__send", toBob, true}, {"own__send", toEvil, false}, {"own__send", toBob, true}} {
			if ok, code := passes(t, w, step.tool, step.args); ok != step.want {
				t.Fatalf("caller %d: %s %s passes: %t %s", i, step.tool, step.args, ok, code)
			}
		}
	}
}

// dies: a gateway that stops is waited for as long as its lease lasts, and then has no sessions any more:
// another one goes on with the callers whose home it was, and trusts none of their values. The sessions
// and callers of others are unharmed.
func (c *cluster) dies(t *testing.T) {
	_, key := c.key(t, 0, "alice")
	sessions, tokens := make([]string, 3), make([]string, 3)
	for at, url := range c.urls { // each is the home of one caller
		tokens[at] = c.token(t, rand.Text(), rand.Text())
		for _, tool := range []string{"own__find", "own__read_web"} {
			if ok, code := passes(t, c.client(url, tokens[at]), tool, `{}`); !ok {
				t.Fatal(code)
			}
		}
		sessions[at] = c.open(t, url, tokens[at])
	}
	ping := func(at int, of int) reply {
		t.Helper()
		r := c.send(t, http.MethodPost, c.urls[at], tokens[of], `{"jsonrpc":"2.0","id":3,"method":"ping"}`, "Mcp-Session-Id", sessions[of], "Mcp-Protocol-Version", legacyRevision)
		if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
		whole := r.all()
		r.Body.Close() // or thousands stay open
		r.Body = io.NopCloser(strings.NewReader(whole))
		return r
	}
	ended := make(chan struct{})
	var others sync.WaitGroup
	defer others.Wait()
	defer close(ended)
	var n atomic.Int64
	for at := range 2 {
		others.Go(func() { // through the other one
			for {
				select {
				case <-ended:
					return
				default:
				}
				if ok, code := passes(t, c.client(c.urls[1-at], tokens[at]), "own__send", toBob); !ok {
					t.Errorf("a caller whose home lives: %s", code)
					return
				}
				if r := ping(1-at, at); r.StatusCode != http.StatusOK {
					t.Errorf("a session of another gateway: %s %s", r.Status, r.all())
					return
				}
				n.Add(1)
			}
		})
	}
	c.processes[2].Signal(syscall.SIGSTOP)
	stopped := c.processes[2].Cmd.Process
	defer func() { _ = stopped.Signal(syscall.SIGCONT) }()                          // or what follows waits for it, too
	timelimit.Wait(t, "a gateway that has stopped is not waited for", func() bool { // a stop takes a moment
		var asked sync.WaitGroup
		var refused atomic.Int64
		for at := range 2 { // at once, since its lease ends soon
			asked.Go(func() {
				switch r := ping(at, 2); r.StatusCode {
				case http.StatusServiceUnavailable:
					refused.Add(1)
				case http.StatusOK:
				default:
					t.Errorf("a gateway that has stopped: %s %s", r.Status, r.all())
				}
			})
		}
		asked.Wait()
		return refused.Load() == 2 || t.Failed()
	})
	c.processes[2].Signal(syscall.SIGCONT)
	timelimit.Wait(t, "the session goes on", func() bool { return ping(0, 2).StatusCode == http.StatusOK })
	c.processes[2].Signal(syscall.SIGKILL)
	c.processes[2].Wait()
	timelimit.Wait(t, "the session is gone with the lease of its gateway", func() bool {
		r := ping(0, 2)
		if s := r.StatusCode; s != http.StatusServiceUnavailable && s != http.StatusNotFound {
			t.Fatalf("a gateway that was killed: %s %s", r.Status, r.all())
		}
		return r.StatusCode == http.StatusNotFound
	})
	timelimit.Wait(t, "the caller goes on", func() bool {
		ok, _ := passes(t, c.client(c.urls[0], tokens[2]), "own__read_web", `{}`)
		return ok
	})
	for i, to := range []string{toBob, toEvil} {
		if ok, code := passes(t, c.client(c.urls[i], tokens[2]), "own__send", to); ok || code != "refused_authorize" {
			t.Errorf("a value of before the takeover: %t %s", ok, code)
		}
	}
	c.processes[2] = c.nodes[2].Serve("--listen", strings.TrimSuffix(strings.TrimPrefix(c.urls[2], "http://"), "/mcp"))
	timelimit.Wait(t, "it takes part again", func() bool {
		ok, _ := passes(t, c.client(c.urls[2], key), "own__find", `{}`)
		return ok
	})
	t.Logf("%d calls of others", n.Load())
}
