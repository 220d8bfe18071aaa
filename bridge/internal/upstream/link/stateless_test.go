package link_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestErasOverHTTP: which revision is spoken with a server, and what finding out costs.
// It costs nothing for later calls.
func TestErasOverHTTP(t *testing.T) {
	sdk := func(stateless bool) http.Handler {
		s := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
		s.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{}}, nil
		})
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless})
	}
	answering := func(status int, body string) http.Handler { // an older server that answers so to what it does not know
		web := rig.JSONServer(rig.Nothing)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "server/discover" {
				w.WriteHeader(status)
				io.WriteString(w, body)
				return
			}
			web.ServeHTTP(w, r)
		})
	}
	both := []string{"server/discover", "initialize"}
	tests := map[string]struct {
		server   http.Handler
		protocol string
		asked    []string // of server/discover and initialize
		fault    string
	}{
		"a server of 2026":                          {rig.NewModern(nil), "", both[:1], "ok"},
		"the Go SDK without sessions":               {sdk(true), "", both[:1], "ok"},
		"the Go SDK with sessions":                  {sdk(false), "", both, "ok"},
		"an older server, plain 400":                {answering(400, "what?"), "", both, "ok"},
		"an older server, 404":                      {answering(404, ""), "", both, "ok"},
		"an older server, 405":                      {answering(405, ""), "", both, "ok"},
		"an older server, a web page":               {answering(200, "<html>"), "", both, "ok"},
		"an older server, an answer of another":     {answering(200, `{"jsonrpc":"2.0","id":99,"result":{}}`), "", both, "ok"},
		"2026 not among the revisions":              {rig.NewModern(map[string]string{"server/discover": strings.Replace(rig.Discovered, "2026-07-28", "2027-01-01", 1)}), "", both, "protocol"},
		"no capabilities":                           {rig.NewModern(map[string]string{"server/discover": `{"supportedVersions":["2026-07-28"]}`}), "", both, "protocol"},
		"the revision is refused":                   {rig.NewModern(map[string]string{"server/discover": `?{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2030-01-01"]}}`}), "", both, "protocol"},
		"the revision is refused, and offered":      {refusingOnce(rig.NewModern(nil)), "", []string{"server/discover", "server/discover"}, "ok"},
		"configured: 2026":                          {rig.NewModern(nil), "2026-07-28", both[:1], "ok"},
		"configured: 2026, and the server is older": {sdk(false), "2026-07-28", both[:1], "protocol"},
		"configured: 2025":                          {sdk(true), "2025-11-25", both[1:], "ok"},
		"configured: 2025, and the server is newer": {rig.NewModern(nil), "2025-11-25", both[1:], "protocol"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rig.NoLeaks(t)
			var mu sync.Mutex
			var asked []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if msg, err := gate.ParseDoc(body); err == nil && slices.Contains(both, msg.Get("method").Text()) {
					mu.Lock()
					asked = append(asked, msg.Get("method").Text())
					mu.Unlock()
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				tt.server.ServeHTTP(w, r)
			}))
			defer srv.Close()
			e := rig.NewEndpoint(t, options.Endpoint{Server: "s", URL: srv.URL, Protocol: tt.protocol, Transport: options.TransportHTTP, Tools: rig.Options()})
			err := e.Connect(t.Context())
			if rig.Kind(err) != tt.fault {
				t.Fatalf("connect: %s, want %s: %v", rig.Kind(err), tt.fault, err)
			}
			for range 20 {
				if tt.fault != "ok" {
					break
				}
				if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
					t.Fatal(err)
				}
			}
			e.Close()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(tt.asked, asked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEraOfSilentServers: a server that does not answer what it does not know is asked
// for the handshake in time.
func TestEraOfSilentServers(t *testing.T) {
	unraced.Long(t)
	t.Parallel() // it waits
	web := rig.JSONServer(rig.Nothing)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "" {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		web.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	timelimit.Grow(t, 3*time.Second, func(limit time.Duration) error {
		e := rig.NewEndpoint(t, options.Endpoint{Server: "s", URL: srv.URL, Tools: rig.Options(), ConnectTimeout: limit})
		defer e.Close()
		if err := e.Connect(t.Context()); err != nil {
			return err
		}
		_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
		return err
	})
}

// TestErasInLines: a server on standard input and output is asked for the handshake
// first.
func TestErasInLines(t *testing.T) {
	tests := map[string]struct {
		answers  map[string]string
		protocol string
		asked    []string
		fault    string
	}{
		"an older server":                     {nil, "", []string{"initialize"}, "ok"},
		"a server of 2026 refuses handshakes": {map[string]string{"initialize": "?unsupported protocol version", "server/discover": rig.Discovered}, "", []string{"initialize", "server/discover"}, "ok"},
		"a server that refuses both":          {map[string]string{"initialize": "?no"}, "", []string{"initialize", "server/discover"}, "protocol"},
		"configured: 2026":                    {map[string]string{"server/discover": rig.Discovered}, "2026-07-28", []string{"server/discover"}, "ok"},
		"configured: 2025":                    {map[string]string{"initialize": "?no", "server/discover": rig.Discovered}, "2025-11-25", []string{"initialize"}, "protocol"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rig.NoLeaks(t)
			s := rig.NewScript(tt.answers)
			cfg := s.Config("s")
			cfg.Protocol = tt.protocol
			e := rig.NewEndpoint(t, cfg)
			if err := e.Connect(t.Context()); rig.Kind(err) != tt.fault {
				t.Fatalf("connect: %s, want %s: %v", rig.Kind(err), tt.fault, err)
			}
			if tt.fault == "ok" {
				if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
					t.Fatal(err)
				}
			}
			e.Close()
			s.Mu.Lock()
			defer s.Mu.Unlock()
			asked := slices.DeleteFunc(slices.Clone(s.Seen), func(m string) bool { return m != "initialize" && m != "server/discover" })
			if diff := cmp.Diff(tt.asked, asked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestModernRequest: what a server of 2026 gets with each request.
func TestModernRequest(t *testing.T) {
	m := rig.NewModern(map[string]string{
		"tools/list": `{"tools":[{"name":"größe","inputSchema":{"type":"object","properties":{
			"city":{"type":"string","x-mcp-header":"City"},"n":{"type":"integer","x-mcp-header":"N"},"ok":{"type":"boolean","x-mcp-header":"OK"},
			"in":{"type":"object","properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}},"none":{"type":["string","null"]},"x":{}}}},
			{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}`,
		"prompts/get":    `{"messages":[]}`,
		"resources/read": `{"contents":[]}`,
	})
	e, _ := rig.Dialled(t, m)
	if tools := e.Tools(t.Context()); len(tools) != 1 {
		t.Fatalf("%d tools: one has a header that clients cannot send", len(tools))
	}
	if notes := e.Status().Notes; len(notes) == 0 || !notes[0].Quarantined || notes[0].Tool != "bad" {
		t.Errorf("notes: %v", notes)
	}
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{{Server: "s", URL: rig.URLOf(t, m), Tools: rig.Options()}}})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, _ := rig.NewGate(t, f)
	meta := gate.MustDoc(`{"traceparent":"00-1","progressToken":"theirs","example.com/a":[1],"io.github.wasmgate/prompt":"secret","authorization":"secret",
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"other","version":"1"},
		"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/logLevel":"info"}`)
	asker := gatetest.Asked(`{"elicitation":{"form":{}},"x":{"y":1}}`, nil)
	asker.OnNotify = func(context.Context, string, gate.Doc) {}
	for _, c := range []gate.Call{
		{Action: gate.CallTool, Name: f.KnownFeatures(gate.FeatureTool)[0].Offered, Args: gate.MustDoc(`{"city":"Zürich","n":4.0e1,"ok":false,"in":{"deep":""},"none":null,"x":"y"}`), Meta: meta, Client: asker},
		{Action: gate.GetPrompt, Name: "s__p"},
		{Action: gate.ReadResource, Name: "file:///ä"},
	} {
		c.Who = gate.Local()
		if _, err := g.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	headers := func(s rig.Sent) map[string]string {
		some := make(map[string]string)
		for k, v := range s.Header {
			if strings.HasPrefix(k, "Mcp-") {
				some[k] = strings.Join(v, "|")
			}
		}
		return some
	}
	last := func(method string) rig.Sent {
		all := m.Of(method)
		if len(all) == 0 {
			t.Fatalf("no %s", method)
		}
		return all[len(all)-1]
	}
	type m1 = map[string]string
	for method, want := range map[string]m1{
		"tools/list": {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"},
		"tools/call": {
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?Z3LDtsOfZQ==?=",
			"Mcp-Param-City": "=?base64?WsO8cmljaA==?=", "Mcp-Param-N": "40", "Mcp-Param-Ok": "false", "Mcp-Param-Deep": "=?base64??=",
		},
		"prompts/get":    {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "prompts/get", "Mcp-Name": "p"},
		"resources/read": {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read", "Mcp-Name": "=?base64?ZmlsZTovLy/DpA==?="},
	} {
		if diff := cmp.Diff(want, headers(last(method))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
	for method, want := range map[string]string{
		"tools/list": `{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/enterprise-managed-authorization":{},"io.modelcontextprotocol/oauth-client-credentials":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`,
		"tools/call": `{"example.com/a":[1],"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"x":{"y":1}},` +
			`"io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":1,"traceparent":"00-1"}`,
		"prompts/get": `{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`,
	} {
		got := last(method).Params.Get("_meta").Value().(map[string]any)
		if info, _ := got["io.modelcontextprotocol/clientInfo"].(map[string]any); info["name"] != "wasmgate" {
			t.Errorf("%s: clientInfo %v", method, info)
		}
		delete(got, "io.modelcontextprotocol/clientInfo")
		b, _ := json.Marshal(got)
		if string(b) != want {
			t.Errorf("%s: _meta\n%s, want\n%s", method, b, want)
		}
	}
	for _, one := range m.Methods() {
		if slices.Contains([]string{"initialize", "ping", "notifications/initialized", "notifications/cancelled"}, one) {
			t.Errorf("%s was sent", one)
		}
	}
}

// TestOwnMetaInBothEras: what a client says in _meta to the server goes to servers of
// the older revisions, too.
func TestOwnMetaInBothEras(t *testing.T) {
	var params gate.Doc
	web := &rig.Web{Call: func(w http.ResponseWriter, _ *http.Request, id string) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
	}}
	e, _ := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if msg, err := gate.ParseDoc(body); err == nil && msg.Get("method").Text() == "tools/call" {
			params = msg.Get("params")
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		web.ServeHTTP(w, r)
	}))
	g, _ := rig.NewGate(t, e)
	c := rig.NewCall("s__echo", "{}")
	c.Meta = gate.MustDoc(`{"traceparent":"00-1","io.github.wasmgate/prompt":"secret","authorization":"secret","io.modelcontextprotocol/logLevel":"info"}`)
	if _, err := g.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := params.Get("_meta").String(); got != `{"traceparent":"00-1"}` {
		t.Errorf("_meta is %s", got)
	}
}

// TestEraChanges: a server that comes back with an older revision is found out, and the
// call that finds it out is made again.
func TestEraChanges(t *testing.T) {
	unraced.Long(t)
	newer := rig.NewModern(nil)
	older := rig.JSONServer(rig.Nothing)
	for name, answer := range map[string]http.HandlerFunc{
		"a plain 400":             func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no session", http.StatusBadRequest) },
		"the revision is refused": func(w http.ResponseWriter, r *http.Request) { refuseRevision(w, r) },
	} {
		t.Run(name, func(t *testing.T) {
			rig.NoLeaks(t)
			var mu sync.Mutex
			now := http.Handler(newer)
			e, srv := rig.Dialled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				h := now
				mu.Unlock()
				if h != newer && r.Header.Get("Mcp-Method") != "" {
					h = answer
				}
				h.ServeHTTP(w, r)
			}))
			if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			now = older
			mu.Unlock()
			rig.Within(t, "the older server is called", func() bool {
				_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
				return err == nil
			})
			e.Close()
			srv.Close()
		})
	}
}

// refusingOnce refuses the revision of the first request, and names it among its own.
func refusingOnce(h http.Handler) http.Handler {
	var asked atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Swap(true) {
			h.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		msg, _ := gate.ParseDoc(body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}}`, msg.Get("id"))
	})
}

func refuseRevision(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	msg, _ := gate.ParseDoc(body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"Unsupported protocol version"}}`, msg.Get("id"))
}

// TestProtocolConfig: an unknown revision is refused.
func TestProtocolConfig(t *testing.T) {
	for _, cfg := range []options.Endpoint{
		{Server: "s", URL: "http://127.0.0.1:1/", Protocol: "2026"},
		{Server: "s", URL: "http://127.0.0.1:1/", Protocol: mcp.Stateless, Transport: options.TransportSSE},
	} {
		cfg.Tools = rig.Options()
		if _, err := upstream.New(cfg); err == nil {
			t.Errorf("%q over %q is accepted", cfg.Protocol, cfg.Transport)
		}
	}
}
