package app_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A collector keeps the spans that come by OTLP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*trace.Span
	paths map[string]int
}

func newCollector(t *testing.T) *collector {
	c := &collector{paths: make(map[string]int)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths[r.URL.Path]++
	if r.URL.Path != "/v1/traces" {
		return
	}
	var m trace.TracesData
	if err := proto.Unmarshal(b, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, res := range m.ResourceSpans {
		for _, scope := range res.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func (c *collector) of(traceID string) (all []*trace.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == traceID {
			all = append(all, s)
		}
	}
	return all
}

// rpc sends a request of revision 2026-07-28.
func rpc(t *testing.T, url, traceparent, method, name, meta, arguments string) string {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":%q,"arguments":%s,"_meta":{%s"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, name, arguments, meta)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": method, "Mcp-Name": name, "Traceparent": traceparent,
	} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestOneTrace: a gateway behind a gateway makes one tree with their client's span at its
// root, and the client's baggage goes no further than it may.
func TestOneTrace(t *testing.T) {
	unraced.Long(t)
	c := newCollector(t)
	exporting := "telemetry: {otlp: {endpoint: \"" + c.URL + "\"}, traces: {ratio: 0}}\n"
	last := newEcho(t)
	granted := func(cfg *config.Config) *config.Config {
		write(t, cfg.Policy.Grants, "- {to: [\"*\"], tools: [\"*\"]}\n")
		return cfg
	}
	back := start(t, granted(load(t, "version: 1\n"+exporting+"servers: {echo: {url: \""+last.URL+"\", protocol: \"2026-07-28\"}}\n")))
	backURL, _, _ := run(t, back, app.Front{Listen: []string{"127.0.0.1:0"}})
	cfg := load(t, "version: 1\n"+exporting+"servers: {back: {url: \""+backURL+"\", protocol: \"2026-07-28\"}}\n")
	front := start(t, granted(cfg))
	url, _, _ := run(t, front, app.Front{Listen: []string{"127.0.0.1:0"}})
	for _, a := range []*app.App{back, front} {
		timelimit.Wait(t, "its servers", func() bool { return len(a.Overview.Status().Unready()) == 0 })
	}
	const id, root = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	meta := `"traceparent":"00-` + id + "-" + root + `-01","tracestate":"a=b","baggage":"user=alice",`
	if answer := rpc(t, url, "", "tools/call", "back__echo__say", meta, `{}`); !strings.Contains(answer, "said") {
		t.Fatal(answer)
	}
	timelimit.Wait(t, "four spans", func() bool { return len(c.of(id)) == 4 })
	parent := make(map[string]*trace.Span)
	for _, s := range c.of(id) {
		parent[hex.EncodeToString(s.ParentSpanId)] = s
	}
	at := root
	for _, kind := range []string{"SERVER", "CLIENT", "SERVER", "CLIENT"} {
		s := parent[at]
		if s == nil || s.Kind.String() != "SPAN_KIND_"+kind {
			t.Fatalf("no span of kind %s under %s: %v", kind, at, c.of(id))
		}
		at = hex.EncodeToString(s.SpanId)
	}
	got := last.meta()
	if want := "00-" + id + "-" + at + "-01"; got["traceparent"] != want || got["tracestate"] != "a=b" {
		t.Errorf("the last server got %v, want the traceparent %s", got, want)
	}
	if _, there := got["baggage"]; there {
		t.Error("baggage was passed on, though nobody asked for it")
	}

	// A trace in the header alone counts, and what is not sampled passes unchanged.
	const other = "1af7651916cd43dd8448eb211c80319c"
	rpc(t, url, "00-"+other+"-"+root+"-01", "tools/call", "back__echo__say", "", `{}`)
	timelimit.Wait(t, "the trace of a header", func() bool { return len(c.of(other)) == 4 })
	const unsampled = "00-2af7651916cd43dd8448eb211c80319c-" + root + "-00"
	rpc(t, url, "", "tools/call", "back__echo__say", `"traceparent":"`+unsampled+`",`, `{}`)
	if got := last.meta()["traceparent"]; got != unsampled {
		t.Errorf("an unsampled traceparent became %v", got)
	}
	// Asked for, baggage goes on; and a refused call is exported, sampled or not.
	for _, a := range []*app.App{front, back} {
		file := a.Overview.Status().Config
		old, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, strings.Replace(string(old), "traces: {ratio: 0}", "traces: {ratio: 0}, baggage: forward", 1))
	}
	timelimit.Wait(t, "baggage", func() bool {
		rpc(t, url, "", "tools/call", "back__echo__say", `"baggage":"user=alice",`, `{}`)
		return last.meta()["baggage"] == "user=alice"
	})
	timelimit.Wait(t, "a refused call", func() bool {
		rpc(t, url, "", "tools/call", "no_such_tool", "", `{}`) // of many a second, such as those while the servers were connected again, not each is exported
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans {
			if s.Name == "tools/call _other" && s.Status.GetMessage() == "refused_lookup" {
				return true
			}
		}
		return false
	})
}

// An echo is a server that keeps the _meta of the last call.
type echo struct {
	*httptest.Server
	mu   sync.Mutex
	last map[string]any
}

func newEcho(t *testing.T) *echo {
	e := new(echo)
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *echo) meta() map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     any
		Method string
		Params struct {
			Meta map[string]any `json:"_meta"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	result := `{"resultType":"complete"}`
	switch m.Method {
	case "server/discover":
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"},"ttlMs":1000,"cacheScope":"public"}`
	case "tools/list":
		result = `{"resultType":"complete","tools":[{"name":"say","description":"Says it.","inputSchema":{"type":"object"}}],"ttlMs":1000,"cacheScope":"public"}`
	case "tools/call":
		e.mu.Lock()
		e.last = m.Params.Meta
		e.mu.Unlock()
		result = `{"resultType":"complete","content":[{"type":"text","text":"said"}]}`
	}
	id, _ := json.Marshal(m.ID)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// TestDeadCollector: calls pass as fast as without, the loss is said, and the end of the
// gateway does not wait for it.
func TestDeadCollector(t *testing.T) {
	unraced.Long(t)
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer slow.Close()
	defer close(hang)
	cfg := load(t, "version: 1\ntelemetry: {otlp: {endpoint: \""+slow.URL+"\", timeout: 200ms, every: 1s}, traces: {ratio: 1}}\n")
	a := start(t, cfg)
	_, _, end := run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	for range 20 {
		if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
			t.Fatal(err)
		}
	}
	timelimit.Wait(t, "problems", func() bool {
		p := strings.Join(a.Overview.Status().Problems, "\n")
		return strings.Contains(p, "otlp metrics: ") && strings.Contains(p, "otlp traces: ")
	})
	ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
	defer cancel()
	done := make(chan struct{})
	go func() { end(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		t.Error("the end of the gateway waits for a collector that is dead")
	}
}
