package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestClientGone: a call ends with who asked for it, whatever the way. One of a session
// whose connection breaks goes on for a while: see TestBrokenStream.
func TestClientGone(t *testing.T) {
	block := func(era string) string { return rig.Request(era, "9", "tools/call", `"name":"local__block"`) }
	over := func(era string, leave func(x *rig.Fixture, session string, hangUp func())) func(testing.TB, *rig.Fixture) {
		return func(t testing.TB, x *rig.Fixture) {
			session := ""
			if era == rig.Old {
				session = rig.OpenSession(t, x.URL)
			}
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := rig.Post(ctx, x.URL, era, session, block(era)); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body) // until it ends
					resp.Body.Close()
				}
			}()
			<-x.Begun
			leave(x, session, hangUp)
			<-done
		}
	}
	hangUp := func(_ *rig.Fixture, _ string, hangUp func()) { hangUp() }
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
	tests := map[string]func(testing.TB, *rig.Fixture){
		"it hangs up, stateless": over(rig.Newest, hangUp),
		"it cancels over HTTP": over(rig.Old, func(x *rig.Fixture, session string, _ func()) {
			resp, err := rig.Post(context.Background(), x.URL, rig.Old, session, cancelled)
			if err == nil {
				resp.Body.Close()
			}
		}),
		"it ends its session": over(rig.Old, func(x *rig.Fixture, session string, _ func()) {
			r, _ := http.NewRequest(http.MethodDelete, x.URL, nil)
			r.Header.Set("Mcp-Session-Id", session)
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}),
		"it closes stdio": func(t testing.TB, x *rig.Fixture) {
			w, end := rig.DialStdio(t, x)
			w(rig.Hello)
			go w(block(rig.Old))
			<-x.Begun
			end()
		},
		"it cancels over stdio": func(t testing.TB, x *rig.Fixture) {
			w, _ := rig.DialStdio(t, x)
			w(rig.Hello)
			answered := make(chan struct{})
			go func() { w(block(rig.Old)); close(answered) }()
			<-x.Begun
			w(cancelled)
			<-answered
		},
		"it cancels over stdio, stateless": func(t testing.TB, x *rig.Fixture) {
			w, _ := rig.DialStdio(t, x)
			answered := make(chan struct{})
			go func() { w(block(rig.Newest)); close(answered) }()
			<-x.Begun
			w(cancelled)
			<-answered
		},
	}
	for name, act := range tests {
		t.Run(name, func(t *testing.T) {
			x := rig.NewFixture(t)
			act(t, x)
			blocked := func() []string {
				return slices.DeleteFunc(x.Records.Done(), func(s string) bool { return !strings.HasPrefix(s, "local__block") })
			}
			rig.Within(t, "the call is recorded as cancelled", func() bool { return slices.Equal(blocked(), []string{"local__block cancelled"}) })
		})
	}
}

// TestEndOfInput: what a client in lines has sent before it closed its output is answered, while
// its answers may still come.
func TestEndOfInput(t *testing.T) {
	rig.NoLeaks(t)
	x := rig.NewFixture(t)
	x.Host.Change(host.Terms{Version: "1", Drain: time.Hour})
	var in strings.Builder
	for _, line := range []string{rig.Hello, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, rig.Request(rig.Old, "8", "tools/list", ""), rig.Request(rig.Old, "9", "tools/call", `"name":"local__echo"`)} {
		fmt.Fprintln(&in, line)
	}
	var out bytes.Buffer
	if err := x.Host.Serve(t.Context(), gate.Local(), strings.NewReader(in.String()), &out); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"0", "8", "9"} {
		if !strings.Contains(out.String(), `"id":`+id+`,"result"`) {
			t.Errorf("request %s has no result in %s", id, out.String())
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestServeEnds with its context, and with what is under way.
func TestServeEnds(t *testing.T) {
	rig.NoLeaks(t)
	x := rig.NewFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	inR, inW := io.Pipe()
	done := make(chan error)
	go func() { done <- x.Host.Serve(ctx, gate.Local(), inR, io.Discard) }()
	fmt.Fprintln(inW, rig.Hello)
	fmt.Fprintln(inW, rig.Request(rig.Old, "9", "tools/call", `"name":"local__block"`))
	<-x.Begun
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	inW.Close()
	if diff := cmp.Diff([]string{"local__block cancelled"}, x.Records.Done()); diff != "" {
		t.Error(diff)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestDrain refuses what is new and waits for what is under way.
func TestDrain(t *testing.T) {
	x := rig.NewFixture(t)
	session := rig.OpenSession(t, x.URL)
	ctx, leave := context.WithCancel(t.Context())
	go rig.Post(ctx, x.URL, rig.Old, session, rig.Request(rig.Old, "9", "tools/call", `"name":"local__block"`))
	<-x.Begun
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := x.Host.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained with a call under way: %v", err)
	}
	resp, err := rig.Post(t.Context(), x.URL, rig.Old, session, rig.Request(rig.Old, "1", "tools/call", `"name":"local__echo"`))
	if err != nil {
		t.Fatal(err)
	}
	if got := rig.AnswerOf(t, resp); !strings.Contains(got, "shutting down") || x.Calls() != 1 {
		t.Errorf("a new call got %s", got)
	}
	testRefused(t, x, session)
	leave()
	if err := x.Host.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// testRefused holds each new request of a draining host against what balancers and clients
// look at: the status, and when to try again. What belongs to calls under way is answered.
func testRefused(t *testing.T, x *rig.Fixture, session string) {
	t.Helper()
	methods := []string{"initialize", "tools/call", "tools/list", "resources/read", "prompts/get", "completion/complete", "tasks/get", "logging/setLevel", "none/such"}
	for era, more := range map[string][]string{rig.Old: {""}, rig.Newest: {"server/discover", "subscriptions/listen"}} {
		for _, method := range append(more, methods...) {
			of := session
			if era == rig.Newest || method == "" {
				of = ""
			}
			if method == "" {
				method = "initialize"
			}
			resp, err := rig.Post(t.Context(), x.URL, era, of, rig.Request(era, `"1"`, method, `"name":"local__echo"`))
			if err != nil {
				t.Fatal(err)
			}
			got := rig.AnswerOf(t, resp)
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s %s: status %d, header %v", era, method, resp.StatusCode, resp.Header)
			}
			if !strings.Contains(got, `"id":"1"`) || !strings.Contains(got, "shutting down") {
				t.Errorf("%s %s: %s", era, method, got)
			}
		}
	}
	for msg, want := range map[string]int{
		rig.Request(rig.Old, "1", "ping", ""):                                           http.StatusOK,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`: http.StatusAccepted,
		`{"jsonrpc":"2.0","id":4,"result":{}}`:                                          http.StatusAccepted,
	} {
		resp, err := rig.Post(t.Context(), x.URL, rig.Old, session, msg)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", msg, resp.StatusCode, want)
		}
	}
}

// TestSDKClient lists, calls and learns of changes with the SDK's client, in both protocol
// revisions, over HTTP and stdio.
func TestSDKClient(t *testing.T) {
	for _, era := range []string{rig.Old, rig.Newest} {
		for _, way := range []string{"HTTP", "stdio"} {
			t.Run(way+" "+era, func(t *testing.T) {
				x := rig.NewFixture(t)
				stop := x.Fleet.Watch(func(status.Lists) { x.Host.Changed() })
				defer stop()
				changed := make(chan struct{}, 10)
				c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "9"}, &mcp.ClientOptions{
					ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				})
				var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: x.URL}
				if way == "stdio" {
					inR, inW := io.Pipe()
					outR, outW := io.Pipe()
					go func() { _ = x.Host.Serve(context.Background(), gate.Local(), inR, outW); outW.Close() }()
					transport = &mcp.IOTransport{Reader: outR, Writer: inW}
				}
				cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: era})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				if got := cs.InitializeResult().ProtocolVersion; got != era {
					t.Fatalf("speaks %s", got)
				}
				l, err := cs.ListTools(t.Context(), nil)
				if err != nil || len(l.Tools) != 4 {
					t.Fatalf("%d tools, %v", len(l.Tools), err)
				}
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__echo", Arguments: map[string]any{"a": 1}}); err != nil {
					t.Error(err)
				}
				var rpc *jsonrpc.Error
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__hidden"}); !errors.As(err, &rpc) || rpc.Code != -32602 {
					t.Errorf("hidden: %v", err)
				}
				if _, err := cs.ListPrompts(t.Context(), nil); err == nil {
					t.Error("prompts are listed")
				}
				if got := x.Records.List()[0].Call.ClientName; got != "c" {
					t.Errorf("the client calls itself %q", got)
				}
				for range 1000 { // the stream for changes may be opening still
					x.Host.Changed()
					select {
					case <-changed:
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
				t.Error("the client was not told of a change")
			})
		}
	}
}

// TestSessionsLeaveNothing opens and closes 1,000 sessions.
func TestSessionsLeaveNothing(t *testing.T) {
	unraced.Long(t)
	x := rig.NewFixture(t)
	round := func() {
		session := rig.OpenSession(t, x.URL)
		resp, err := rig.Post(t.Context(), x.URL, rig.Old, session, rig.Request(rig.Old, "1", "tools/call", `"name":"local__echo"`))
		if err != nil {
			t.Fatal(err)
		}
		rig.AnswerOf(t, resp)
		r, _ := http.NewRequest(http.MethodDelete, x.URL, nil)
		r.Header.Set("Mcp-Session-Id", session)
		resp, err = http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	stdio := func() { w, end := rig.DialStdio(t, x); w(rig.Hello); end() }
	measure := func() (goroutines int, heap uint64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	for range 50 {
		round()
		stdio()
	}
	forget(x)
	g0, h0 := measure()
	for range 1000 {
		round()
	}
	for range 100 {
		stdio()
	}
	forget(x)
	var g1 int
	var h1 uint64
	rig.Within(t, "nothing is left behind", func() bool { g1, h1 = measure(); return g1 <= g0+5 && h1 <= h0+2<<20 })
	t.Logf("goroutines %d -> %d, heap %d KiB -> %d KiB", g0, g1, h0>>10, h1>>10)
}

func forget(x *rig.Fixture) {
	x.Records.Mu.Lock()
	defer x.Records.Mu.Unlock()
	x.Records.All = nil
}

// FuzzHost sends arbitrary input to a host over HTTP, in both protocol revisions: it answers, and
// it lives. Whatever the screen lets through is strict JSON.
func FuzzHost(f *testing.F) {
	var forged atomic.Bool // an answer that the host has taken for one to a question of its own
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Do: func(_ context.Context, c gate.Call) (gate.Result, error) {
				if c.Brought.Approval != nil && c.Brought.Approval.Err == nil {
					forged.Store(true)
				}
				return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
			},
			Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
		},
		Terms: host.Terms{Asks: true},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(rig.Hello), false)
	for _, s := range []string{
		rig.Request(rig.Newest, "1", "tools/call", `"name":"a","arguments":{}`), rig.Request(rig.Newest, "1", "tools/list", `"cursor":"x"`), rig.Request(rig.Newest, "1", "server/discover", ""),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, `[{}]`, `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, "\xff", `{"id":1,"method":"tools/call","params":[[[`,
		rig.Request(rig.Newest, "1", "tools/call", `"name":"a"`+approve("{}", "w1.AAAA")), rig.Request(rig.Newest, "1", "tools/call", `"name":"a"`+approve(`{"b":1}`, "")),
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":[]}}}`,
	} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, stateless bool) {
		answer := h.Refused(body)
		if _, err := gate.ParseDoc(body); err != nil && answer == "" {
			t.Fatalf("%q passed: %v", body, err)
		}
		if answer != "" {
			if _, err := gate.ParseDoc([]byte(answer)); err != nil {
				t.Fatalf("answer %q: %v", answer, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // of a subscription, which does not end
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if doc, err := gate.ParseDoc(body); err == nil && stateless {
			r.Header.Set("Mcp-Protocol-Version", rig.Newest)
			r.Header.Set("Mcp-Method", doc.Get("method").Text())
			r.Header.Set("Mcp-Name", doc.At("/params/name").Text())
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if forged.Load() {
			t.Fatalf("%q brings an answer to a question that nobody asked", body)
		}
	})
}
