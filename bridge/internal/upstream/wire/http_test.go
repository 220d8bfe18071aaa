package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// TestHTTPAnswers: the ways in which servers answer a call, right and wrong.
func TestHTTPAnswers(t *testing.T) {
	result := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + rig.Odd + `}` }
	event := func(format string) *rig.Web {
		return rig.EventServer(func(w io.Writer, id string) { io.WriteString(w, strings.ReplaceAll(format, "$", result(id))) })
	}
	answering := func(code int, kind, body string) *rig.Web {
		return &rig.Web{Call: func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			io.WriteString(w, strings.ReplaceAll(body, "$", id))
		}}
	}
	big := func(n int) string { return strings.Repeat("x", n) }
	tests := map[string]struct {
		server *rig.Web
		kind   string
		phase  status.Phase
	}{
		"JSON":                        {rig.JSONServer(result), "ok", status.Ready},
		"JSON on several lines":       {rig.JSONServer(func(id string) string { return strings.ReplaceAll(result(id), ",", " ,\n") }), "ok", status.Ready},
		"one event":                   {event("data: $\n\n"), "ok", status.Ready},
		"CRLF":                        {event("event: message\r\nid: 1\r\ndata: $\r\n\r\n"), "ok", status.Ready},
		"comments and other fields":   {event(": hello\n\n: x\nretry: 5\nfoo\ndata:$\n\n"), "ok", status.Ready},
		"notifications before":        {event("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: $\n\n"), "ok", status.Ready},
		"an unknown id before":        {event("data: {\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{}}\n\ndata: $\n\n"), "ok", status.Ready},
		"the answer twice":            {event("data: $\n\ndata: $\n\n"), "ok", status.Ready},
		"a request on the stream":     {event("data: {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n\ndata: $\n\n"), "ok", status.Ready},
		"the last event is cut":       {event("data: $\n"), "transport", status.Ready},
		"no event":                    {event(""), "transport", status.Ready},
		"an event of nonsense":        {event("data: nonsense\n\n"), "protocol", status.Ready},
		"duplicate keys":              {rig.JSONServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"a":1,"a":2}}` }), "protocol", status.Ready},
		"no result":                   {rig.JSONServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `}` }), "transport", status.Ready},
		"an answer to another":        {rig.JSONServer(func(string) string { return result("999") }), "protocol", status.Ready},
		"the stream of another":       {event("data: {\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n\n"), "transport", status.Ready},
		"a body that is too large":    {rig.JSONServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":"` + big(2<<20) + `"}` }), "refused_limit", status.Ready},
		"an event that is too large":  {event("data: {\"x\":\"" + big(2<<20) + "\"}\n\n"), "refused_limit", status.Ready},
		"an event of many lines":      {event(strings.Repeat("data: "+big(1000)+"\n", 2000) + "\n"), "refused_limit", status.Ready},
		"202 to a request":            {answering(202, "", ""), "protocol", status.Ready},
		"a web page":                  {answering(200, "text/html", "<p>"), "protocol", status.Ready},
		"500":                         {answering(500, "text/plain", "oops"), "transport", status.Ready},
		"401":                         {answering(401, "application/json", `{"error":"token"}`), "transport", status.Ready},
		"an event of another type":    {event("event: ping\ndata: ping\n\ndata: $\n\n"), "ok", status.Ready},
		"404 ends the session":        {answering(404, "text/plain", "who are you"), "transport", status.Ready}, // another one is begun
		"a JSON-RPC error with a 400": {answering(400, "application/json", `{"jsonrpc":"2.0","id":$,"error":{"code":-32602,"message":"no"}}`), "ok", status.Ready},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rig.NoLeaks(t)
			e, srv := rig.Dialled(t, tt.server, func(c *options.Endpoint) { c.MaxMessage = 1 << 20 })
			res, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
			if rig.Kind(err) != tt.kind {
				t.Fatalf("%s, want %s: %v", rig.Kind(err), tt.kind, err)
			}
			if err == nil && !res.IsError && strings.NewReplacer(" ", "", "\n", "").Replace(res.Doc.String()) != rig.Odd {
				t.Errorf("the result is another: %s", res.Doc)
			}
			rig.Within(t, "it is "+string(tt.phase), func() bool { return e.Phase() == tt.phase })
			e.Close()
			srv.Close()
		})
	}
}

// TestEventsInPieces splits a stream at every byte.
func TestEventsInPieces(t *testing.T) {
	stream := "\n\ndata: one\r\n\r\n: comment\n\ndata:two\ndata: lines\nid: 7\n\nevent: x\ndata: none\n\nevent: message\ndata: three\n\ndata: cut"
	want := []string{"one", "two\nlines", "three"}
	for at := range len(stream) {
		var got []string
		err := wire.ReadEvents(io.MultiReader(strings.NewReader(stream[:at]), strings.NewReader(stream[at:])), 100, func(b []byte) (bool, error) {
			got = append(got, string(b))
			return true, nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("split at %d: %q, %v", at, got, err)
		}
	}
	exact := "data: " + strings.Repeat("x", 100) + "\n\n"
	for max, ok := range map[int64]bool{100: true, 99: false} {
		err := wire.ReadEvents(strings.NewReader(exact), max, func([]byte) (bool, error) { return true, nil })
		if (err == nil) != ok {
			t.Errorf("an event of 100 bytes, at most %d: %v", max, err)
		}
	}
}

// TestHTTPReusesConnections: 100 calls need no 100 connections.
func TestHTTPReusesConnections(t *testing.T) {
	answer := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }
	for name, h := range map[string]*rig.Web{
		"JSON":   rig.JSONServer(answer),
		"events": rig.EventServer(func(w io.Writer, id string) { fmt.Fprintf(w, "data: %s\n\n", answer(id)) }),
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			srv := httptest.NewUnstartedServer(h)
			srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns.Add(1)
				}
			}
			srv.Start()
			defer srv.Close()
			e := rig.Ready(t, options.Endpoint{Server: "s", URL: srv.URL, Tools: rig.Options()})
			for range 100 {
				if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
					t.Fatal(err)
				}
			}
			e.Close()
			if n := conns.Load(); n > 3 {
				t.Errorf("%d connections for 100 calls", n)
			}
		})
	}
}

// TestHTTPHeaders: the configured headers are on each request, those of the
// protocol from when they are known, and nothing comes from the environment.
func TestHTTPHeaders(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	h := rig.JSONServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` })
	e, _ := rig.Dialled(t, h, func(c *options.Endpoint) { c.Headers = http.Header{"X-Key": {"k"}} })
	if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
		t.Fatal(err)
	}
	rig.Within(t, "it listens", func() bool { return slices.Contains(h.Asked(), "GET") })
	e.Close()
	rig.Within(t, "its session is ended", func() bool { return slices.Contains(h.Asked(), "DELETE") })
	h.Mu.Lock()
	defer h.Mu.Unlock()
	slices.Sort(h.Methods)
	want := []string{"DELETE", "GET", "POST initialize", "POST notifications/initialized", "POST server/discover", "POST tools/call", "POST tools/list"}
	if diff := cmp.Diff(want, h.Methods); diff != "" {
		t.Error(diff)
	}
	for i, header := range h.Headers {
		if header.Get("X-Key") != "k" {
			t.Errorf("request %d has no configured header", i)
		}
		if i == 0 && header.Get("Mcp-Method") == "server/discover" && header.Get("Mcp-Protocol-Version") == rig.Newest {
			continue
		}
		first := header.Get("Mcp-Session-Id") == ""
		if first != (i == 1) || first != (header.Get("Mcp-Protocol-Version") == "") {
			t.Errorf("request %d: %v", i, header)
		}
	}
}

// TestRedirects: within the origin they are followed, as long as the message
// comes along; elsewhere nothing is sent.
func TestRedirects(t *testing.T) {
	var leaked, stray atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	defer other.Close()
	h := rig.JSONServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` })
	mux := http.NewServeMux()
	mux.Handle("/mcp/", h)
	mux.Handle("/same", http.RedirectHandler("/mcp/", http.StatusTemporaryRedirect))
	mux.Handle("/moved", http.RedirectHandler("/stray", http.StatusFound))
	mux.HandleFunc("/stray", func(http.ResponseWriter, *http.Request) { stray.Add(1) })
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusPermanentRedirect))
	mux.Handle("/other", http.RedirectHandler(other.URL, http.StatusPermanentRedirect))
	mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/steal\n\n", other.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	tests := map[string]struct{ path, transport, kind string }{
		"within the origin":            {"/same", options.TransportHTTP, "ok"},
		"that drops the message":       {"/moved", options.TransportHTTP, "transport"},
		"in a circle":                  {"/loop", options.TransportHTTP, "transport"},
		"to another origin":            {"/other", options.TransportHTTP, "transport"},
		"by an endpoint event of SSE":  {"/sse", options.TransportSSE, "transport"},
		"to another origin, with auto": {"/other", "", "transport"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := rig.NewEndpoint(t, options.Endpoint{
				Server: "s", URL: srv.URL + tt.path, Transport: tt.transport, Tools: rig.Options(),
				Headers: http.Header{"Authorization": {"Bearer x"}},
			})
			if err := e.Connect(t.Context()); rig.Kind(err) != tt.kind {
				t.Errorf("%s, want %s: %v", rig.Kind(err), tt.kind, err)
			}
			e.Close()
		})
	}
	if leaked.Load() != 0 || stray.Load() != 0 {
		t.Errorf("another origin got %d requests, %d came without their message", leaked.Load(), stray.Load())
	}
}

// TestSSEFallback: auto finds a server of the older transport, and takes the
// configured headers there.
func TestSSEFallback(t *testing.T) {
	rig.NoLeaks(t)
	var bare atomic.Int32
	var gone atomic.Bool
	up := mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	up.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	old := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return up }, nil)
	e, srv := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" {
			bare.Add(1)
		}
		if gone.Load() {
			panic(http.ErrAbortHandler)
		}
		old.ServeHTTP(w, r)
	}), func(c *options.Endpoint) { c.Headers = http.Header{"X-Key": {"k"}} })
	for range 10 {
		if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	if bare.Load() != 0 {
		t.Errorf("%d requests without the configured header", bare.Load())
	}
	gone.Store(true) // else it may be connected again before anybody looks
	srv.CloseClientConnections()
	rig.Within(t, "the stream is missed", func() bool { return e.Phase() == status.Faulted })
	if s := e.Status(); s.Fault != fault.Transport {
		t.Errorf("status after the stream broke: %+v", s)
	}
	e.Close()
	srv.Close()
}

// TestHTTPServerGone: a server that no longer listens is faulted.
func TestHTTPServerGone(t *testing.T) {
	e, srv := rig.Dialled(t, rig.JSONServer(nil))
	srv.Close()
	for i := 0; e.Phase() != status.Faulted; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it would wait for the server to come back
		if _, err := rig.Do(ctx, t, e, "s__echo", "{}"); err == nil {
			t.Error("the call passed")
		}
		cancel()
		if i == 1000 {
			t.Fatalf("phase %s", e.Phase())
		}
	}
}

// TestHTTPNotRepeated: a call whose connection breaks is sent once.
func TestHTTPNotRepeated(t *testing.T) {
	var calls atomic.Int32
	e, _ := rig.Dialled(t, &rig.Web{Call: func(w http.ResponseWriter, _ *http.Request, _ string) {
		calls.Add(1)
		panic(http.ErrAbortHandler)
	}})
	for i := range 4 { // after five the circuit opens
		if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); rig.Kind(err) != "transport" {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if calls.Load() != 4 {
		t.Errorf("4 calls came %d times", calls.Load())
	}
}

// TestHTTPCancel: a caller that leaves does not wait for a server that hangs, and the server is
// notified.
func TestHTTPCancel(t *testing.T) {
	rig.NoLeaks(t)
	begun := make(chan struct{})
	h := &rig.Web{Call: func(w http.ResponseWriter, r *http.Request, _ string) { close(begun); <-r.Context().Done() }}
	e, srv := rig.Dialled(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := rig.Do(ctx, t, e, "s__echo", "{}"); rig.Kind(err) != "cancelled" {
		t.Error(err)
	}
	told := func() bool {
		h.Mu.Lock()
		defer h.Mu.Unlock()
		return slices.Contains(h.Methods, "POST notifications/cancelled")
	}
	rig.Within(t, "the server is told", told)
	e.Close()
	srv.Close()
}

// TestHTTPListens: what a server says on its own stream is heard, and the stream
// is opened again.
func TestHTTPListens(t *testing.T) {
	rig.NoLeaks(t)
	var listings, streams atomic.Int32
	h := rig.JSONServer(nil)
	e, srv := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			streams.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			return
		}
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("tools/list")) {
			listings.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	}))
	rig.Within(t, "it is heard, and listened to again", func() bool { return listings.Load() >= 3 && streams.Load() >= 2 })
	e.Close()
	srv.Close()
}

// TestNoStreamOfItsOwn: a server that answers 404 to the GET for its own messages is one without
// such a stream, not one that has ended the session.
func TestNoStreamOfItsOwn(t *testing.T) {
	rig.NoLeaks(t)
	for _, code := range []int{400, 401, 403, 404, 405, 406, 410, 501} {
		h := rig.JSONServer(func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + rig.Odd + `}` })
		var asked atomic.Bool
		e, srv := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				asked.Store(true)
				w.WriteHeader(code)
				return
			}
			h.ServeHTTP(w, r)
		}))
		rig.Within(t, "the stream is asked for", asked.Load)
		if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil || e.Phase() != status.Ready {
			t.Errorf("GET answered with %d: %v, %s", code, err, e.Phase())
		}
		e.Close()
		srv.Close()
	}
}

// FuzzReadEvents: whatever a server streams, no event is larger than allowed,
// and how the stream is split does not matter.
func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("data: {\"a\":1}\n\n"), 3)
	f.Add([]byte(": c\r\nevent: message\r\ndata:x\r\ndata: y\r\n\r\n"), 9)
	f.Add([]byte("data\ndata:\ndata: \n\n\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, at int) {
		const most = 50
		read := func(r io.Reader) (events []string, failed bool) {
			err := wire.ReadEvents(r, most, func(b []byte) (bool, error) {
				if len(b) == 0 || len(b) > most+1 {
					t.Fatalf("an event of %d bytes", len(b))
				}
				events = append(events, string(b))
				return true, nil
			})
			return events, err != nil
		}
		at = max(0, min(at, len(stream)))
		whole, bad := read(bytes.NewReader(stream))
		split, badSplit := read(io.MultiReader(bytes.NewReader(stream[:at]), bytes.NewReader(stream[at:])))
		if bad != badSplit || !slices.Equal(whole, split) {
			t.Errorf("whole %q %v, split %q %v", whole, bad, split, badSplit)
		}
	})
}
