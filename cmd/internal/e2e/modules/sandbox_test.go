//go:build unix

package modules

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// sandboxed makes a place with modules, which are built there.
func sandboxed(t *testing.T, p *e2e.Program, configuration string, build ...e2e.Guest) *e2e.Place {
	t.Helper()
	pl := p.Place(t, configuration)
	for _, m := range build {
		m.Build(pl)
	}
	return pl
}

var (
	serverModule = e2e.Guest{Name: "server.wasm", Dir: "sandbox/testdata/mcpserver", Mode: "exe"}
	v1Module     = e2e.Guest{Name: "v1.wasm", Dir: "sandbox/internal/extism/testdata/v1", Mode: "c-shared"}
	v2Module     = e2e.Guest{Name: "v2.wasm", Dir: "sandbox/internal/extism/testdata/v2", Mode: "c-shared"}
)

// testLanguages offers the tools that starters make in three languages, as
// people who begin with one do.
func testLanguages(t *testing.T, p *e2e.Program) {
	pl := sandboxed(t, p, "")
	config := "version: 1\npolicy: {paths: [policies], timeout: 5s}\ntools:\n"
	var calls []e2e.WantedCall
	for _, language := range []string{"go", "c", "rust"} {
		t.Run("build "+language, func(t *testing.T) {
			starter(pl, t, language)
			config += fmt.Sprintf("  word-%s: {module: word-%[1]s/word_%[1]s.wasm}\n", language)
			calls = append(calls, e2e.WantedCall{Tool: "local__word_" + language, Argument: "text", Value: "one two\nthree\n", Want: `"words":3`})
		})
	}
	if t.Failed() {
		return
	}
	pl.Write("wasmgate.yaml", config)
	pl.Write("policies/words.rego", "package wasmgate\n\ndeny contains \"that word is not counted\" if input.arguments.text == \"unspeakable\"\n")
	gw := pl.ServeModules()
	clients := map[string]e2e.Client{"wasmgate call": e2e.CommandLine{Place: pl}}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		clients["an MCP client, "+revision] = e2e.GoSDK{Revision: revision, Transport: &mcp.StreamableClientTransport{Endpoint: gw.URL}}
	}
	for name, c := range clients {
		t.Run(name, func(t *testing.T) { c.Check(t, calls) })
	}
	w := e2e.MustWire(t, gw.URL)
	for _, c := range calls {
		if got := e2e.Code(w.MustCall(t, c.Tool, `{"text":"unspeakable"}`)); got != "refused_authorize" {
			t.Errorf("%s: a text that the policy denies: %q", c.Tool, got)
		}
		if got := e2e.Code(w.MustCall(t, c.Tool, `{"text":5}`)); got != "refused_validate_input" {
			t.Errorf("%s: a text that is none: %q", c.Tool, got)
		}
		if o := pl.Run("call", c.Tool, `{"text":"unspeakable"}`); o.Code != 3 || !strings.Contains(o.Stderr, "that word is not counted") {
			t.Errorf("%s: exit %d, want 3: %s", c.Tool, o.Code, o.Stderr)
		}
	}
	checkCalls(pl)
}

// starter makes the starter project of a language, and builds it with the
// command of its README. It skips if the toolchain does not work.
func starter(pl *e2e.Place, t *testing.T, language string) {
	t.Helper()
	path := toolchain.NeedPath(t, map[string][]string{"c": {"make", "clang"}, "rust": {"rustc", "cargo"}, "go": {"sh"}}[language]...)
	dir := pl.File("word-" + language)
	pl.Must("sandbox", "new", language, dir)
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^(.+?) +# build$`).FindSubmatch(readme)
	if command == nil {
		t.Fatalf("the README does not say how to build it:\n%s", readme)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", string(command[1]))
	c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PATH="+path)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command[1], err, out)
	}
}

// An origin is a web server of these tests. It answers with what it was sent,
// also what it should keep to itself; at /v1/slow it does not answer.
type origin struct {
	url  string
	mu   sync.Mutex
	keys []string // Authorization of each request
}

func newOrigin(t *testing.T) *origin {
	o := &origin{}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		o.mu.Lock()
		o.keys = append(o.keys, key)
		o.mu.Unlock()
		switch r.URL.Path {
		case "/v1/slow":
			e2e.Hang(w, r)
		case "/v1/away":
			http.Redirect(w, r, "/v2/x", http.StatusFound)
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Key", key)
		fmt.Fprintf(w, "%s %s %s with %s", r.Method, r.URL.Path, body, key)
	}))
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	o.url = ts.URL
	return o
}

// seen returns what the origin was sent as Authorization, request by request.
func (o *origin) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.keys...)
}

// A sandboxStep is a call, and a part of what is answered.
type sandboxStep struct{ name, tool, args, want string }

// steps makes calls, and returns all that was answered.
func steps(w *e2e.Wire, t *testing.T, steps []sandboxStep) string {
	var said strings.Builder
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			a := w.MustCall(t, s.tool, s.args)
			said.Write(a.Result)
			e2e.Holds(t, a.Text(), s.want)
		})
	}
	return said.String()
}

// checkCalls looks at the log: each host call was made for a call that had been granted and was not
// done, and the record of a sandboxed tool's call has what it took. It returns how many host calls
// there are of each kind.
func checkCalls(pl *e2e.Place) map[string]int {
	pl.T.Helper()
	pl.Verify()
	kinds := map[string]int{}
	asked := map[string]int{} // by the calls that are under way
	for _, e := range pl.Log() {
		_, under := asked[e.ID]
		switch e.Event {
		case "granted":
			asked[e.ID] = 0
		case "host_call":
			kinds[e.Action+" "+e.Effect]++
			if _, ok := asked[e.Parent]; !ok {
				pl.T.Errorf("a host call of no call: %s", e.Raw)
			}
			asked[e.Parent]++
		case "done":
			if under && (e.Fuel == 0 || e.MemoryPeak == 0 || e.HostCalls != asked[e.ID]) {
				pl.T.Errorf("after %d host calls: %s", asked[e.ID], e.Raw)
			}
			delete(asked, e.ID)
		}
	}
	if len(asked) > 0 {
		pl.T.Errorf("calls that were granted are not done: %v", asked)
	}
	return kinds
}

// testPlugins offers Extism plug-ins of both conventions, which have no
// manifest.
func testPlugins(t *testing.T, p *e2e.Program) {
	o := newOrigin(t)
	pl := sandboxed(t, p, "tools:\n"+
		"  v1: {module: v1.wasm, server: v1, config: {greeting: Hello}, grant: {http: [{origin: '"+o.url+"', methods: [POST], path: /v1/, private: true}], kv: true}}\n"+
		"  bare: {module: v1.wasm, server: bare}\n"+
		"  v2: {module: v2.wasm, server: v2}\n", v1Module, v2Module)
	gw := pl.ServeModules()
	if list := pl.Must("tools"); strings.Contains(list, "v1__") || !strings.Contains(list, "bare__greet") || !strings.Contains(list, "v2__ask") {
		t.Errorf("before a grant, tools without capabilities alone are offered: %s", list)
	}
	if o := pl.Run("call", "v1__greet", `{"name":"ada"}`); o.Code != 3 {
		t.Errorf("before a grant: exit %d, want 3: %s", o.Code, o.Stderr)
	}
	pl.Must("grant", "--yes", "v1__*")
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		e2e.GoSDK{Revision: revision, Transport: &mcp.StreamableClientTransport{Endpoint: gw.URL}}.Check(t, []e2e.WantedCall{
			{Tool: "bare__greet", Argument: "name", Value: "ada", Want: " ada, after ada;"}, {Tool: "v2__ask", Argument: "question", Value: "why", Want: "asked"},
		})
	}
	e2e.Holds(t, pl.Must("call", "v1__greet", `{"name":"ada"}`), "Hello ada, after ada;")
	steps(e2e.MustWire(t, gw.URL), t, []sandboxStep{
		{"what was kept is kept", "v1__greet", `{"name":"bob"}`, "Hello bob, after ada;bob;"},
		{"without a grant nothing is kept", "bare__greet", `{"name":"bob"}`, " bob, after bob;"},
		{"a request", "v1__fetch", `{"url":"` + o.url + `/v1/x"}`, "POST /v1/x ping"},
		{"a path that is not granted", "v1__fetch", `{"url":"` + o.url + `/v2/x"}`, "trap_denied"},
		{"an address inside", "v1__fetch", `{"url":"http://169.254.169.254/v1/x"}`, "trap_denied"},
		{"a request without a grant", "bare__fetch", `{"url":"` + o.url + `/v1/x"}`, "trap_denied"},
		{"an error of the tool", "v1__fail", "{}", "no tool fail"},
	})
	if e := pl.LastDone("bare__fetch"); e.Code != "trap_denied" || !strings.Contains(e.Error, "it is granted no HTTP") {
		t.Errorf("recorded as %s", e.Raw)
	}
	if seen := o.seen(); len(seen) != 1 {
		t.Errorf("the origin had %d requests, want 1", len(seen))
	}
	want := map[string]int{"sandbox/http allow": 1, "sandbox/http deny": 2, "sandbox/kv allow": 4}
	if diff := cmp.Diff(want, checkCalls(pl)); diff != "" {
		t.Errorf("host calls in the log (-want +got):\n%s", diff)
	}
}

// testGuestServer runs an MCP server in the sandbox as any other server. One of
// its tools never ends.
func testGuestServer(t *testing.T, p *e2e.Program) {
	pl := sandboxed(t, p, "servers:\n  guest: {module: server.wasm, limits: {timeout: 5s}}\n", serverModule)
	gw := pl.ServeModules()
	if list := pl.Must("tools", "--all"); !strings.Contains(list, "guest__upper") || strings.Contains(pl.Must("tools"), "guest__") {
		t.Errorf("before a grant its tools are known, and not offered: %s", list)
	}
	if o := pl.Run("call", "guest__upper", `{"text":"abc"}`); o.Code != 3 {
		t.Errorf("before a grant: exit %d, want 3", o.Code)
	}
	for _, tool := range []string{"guest__upper", "guest__count", "guest__spin"} {
		pl.Must("grant", "--yes", tool)
	}
	calls := []e2e.WantedCall{{Tool: "guest__upper", Argument: "text", Value: "abc", Want: "ABC"}, {Tool: "guest__count", Argument: "text", Value: "", Want: "xx"}}
	for name, c := range map[string]e2e.Client{
		"wasmgate call":             e2e.CommandLine{Place: pl},
		"an MCP client, 2025-11-25": e2e.GoSDK{Revision: "2025-11-25", Transport: &mcp.StreamableClientTransport{Endpoint: gw.URL}},
		"an MCP client, 2026-07-28": e2e.GoSDK{Revision: "2026-07-28", Transport: &mcp.StreamableClientTransport{Endpoint: gw.URL}},
	} {
		t.Run(name, func(t *testing.T) { c.Check(t, calls) })
	}
	w := e2e.MustWire(t, gw.URL)
	if a := w.MustCall(t, "guest__nap", `{"text":""}`); a.Error == nil {
		t.Errorf("a tool that no one granted: %s", a.Result)
	}
	checkSpin(pl, gw, w)
	pl.Verify()
}

// checkSpin calls the tool that never ends: its server is ended and begins anew,
// and no one else has to wait.
func checkSpin(pl *e2e.Place, gw *e2e.Process, w *e2e.Wire) {
	t := pl.T
	t.Helper()
	before := w.MustCall(t, "guest__count", `{"text":""}`).Text()
	spin := make(chan string, 1)
	go func() {
		a, err := w.Call(t.Context(), "guest__spin", `{"text":""}`)
		spin <- fmt.Sprint(a.Text(), err)
	}()
	healthy := 0
	for got := ""; got == ""; {
		select {
		case got = <-spin:
			e2e.Holds(t, got, "timeout: ")
		case <-time.After(100 * time.Millisecond):
			if status, body := e2e.Get(t, strings.TrimSuffix(gw.URL, "/mcp")+"/healthz"); status != http.StatusOK {
				t.Fatalf("healthz = %d %s", status, body)
			}
			healthy++
		}
	}
	if healthy == 0 {
		t.Error("nothing was answered while a tool spun")
	}
	if e := pl.LastDone("guest__spin"); e.Code != "timeout" || !strings.Contains(e.Error, "deadline: it ran longer than 5s") {
		t.Errorf("recorded as %s", e.Raw)
	}
	timelimit.Wait(t, "the server works again", func() bool { return w.MustCall(t, "guest__upper", `{"text":"abc"}`).Text() == "ABC" })
	if after := w.MustCall(t, "guest__count", `{"text":""}`).Text(); len(after) >= len(before) {
		t.Errorf("it counts %d calls after %d: it is the old one", len(after), len(before))
	}
	e2e.Holds(t, gw.Stderr.String(), "server in the sandbox ended")
}
