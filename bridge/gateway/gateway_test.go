package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/sandbox"
)

// records keeps the codes of what was recorded.
type records struct {
	mu    sync.Mutex
	codes []string
}

func (r *records) Record(_ context.Context, rec *gate.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes = append(r.codes, string(rec.Event)+" "+rec.Code)
	return nil
}

// list returns them so far.
func (r *records) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.codes)
}

// tool returns a function that answers with its arguments.
func tool(name string, call func(ctx context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error)) options.LocalTool {
	if call == nil {
		call = func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
			return text(c.Args.Get("text").Text()), nil
		}
	}
	return options.LocalTool{Definition: gate.MustDoc(fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)), Call: call}
}

func text(s string) gate.Result {
	b, err := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": s}}})
	if err != nil {
		panic(err)
	}
	return gate.Result{Doc: gate.MustDoc(string(b))}
}

func granting(patterns ...string) gateway.Policy {
	return gateway.Policy{Options: policy.Options{Timeout: patience, Grants: []policy.Grant{{To: []string{"*"}, Tools: patterns}}}}
}

// patience is how long a decision may take where a test is not about that: a busy machine
// decides slowly.
const patience = time.Minute

func start(t *testing.T, cfg gateway.Config) *gateway.Gateway {
	t.Helper()
	if cfg.Policy.Options.Timeout == 0 {
		cfg.Policy.Options.Timeout = patience
	}
	g, err := gateway.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func call(g *gateway.Gateway, name, args string) (gate.Result, error) {
	who := gate.Local()
	return g.Do(context.Background(), gate.Call{
		ID: gate.NewID(), Action: gate.CallTool, Name: name, Args: gate.MustDoc(args), Who: who, Session: gate.SessionKey{Owner: who.Owner},
	})
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	ok := func() gateway.Config { return gateway.Config{Recorder: new(records)} }
	tests := map[string]struct {
		change func(c *gateway.Config)
		err    string
	}{
		"a gateway that records nothing":      {func(c *gateway.Config) { c.Recorder = nil }, "set Audit or Recorder"},
		"an audit log that cannot be written": {func(c *gateway.Config) { c.Audit = filepath.Join(dir, "file", "audit.jsonl") }, "file"},
		"a policy that does not compile": {func(c *gateway.Config) {
			c.Policy.Files = fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\nallow if if\n")}}
		}, "a.rego:2"},
		"a grant that is none":        {func(c *gateway.Config) { c.Policy = granting("a*b") }, "a*b"},
		"a profile that no one knows": {func(c *gateway.Config) { c.Sanitize.MIME = []clean.Rule{{Pattern: "text/*", Profile: "loose"}} }, "loose"},
		"a module that is none": {func(c *gateway.Config) {
			c.Modules = []gateway.Module{{WASM: []byte("no"), Config: sandbox.ModuleConfig{Name: "m"}}}
		}, "module m"},
		"a function without code": {func(c *gateway.Config) {
			c.Functions = map[string][]options.LocalTool{"a": {{Definition: gate.MustDoc(`{"name":"t","inputSchema":{"type":"object"}}`)}}}
		}, "no function"},
		"a server with a name that is none": {func(c *gateway.Config) { c.Functions = map[string][]options.LocalTool{"A_b": {tool("t", nil)}} }, "A_b"},
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := ok()
			tt.change(&c)
			g, err := gateway.New(t.Context(), c)
			if g != nil || err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("gateway %v, error %v; want %q", g, err, tt.err)
			}
		})
	}
}

// A failed New leaves its log to the next.
func TestNewThatFailsClosesItsLog(t *testing.T) {
	c := gateway.Config{Audit: filepath.Join(t.TempDir(), "audit.jsonl"), AuditOptions: audit.Options{Node: "n"}}
	c.Modules = []gateway.Module{{WASM: []byte("no")}}
	if _, err := gateway.New(t.Context(), c); err == nil {
		t.Fatal("no error")
	}
	c.Modules = nil
	start(t, c)
}

func TestRecorderOnly(t *testing.T) {
	var r records
	g := start(t, gateway.Config{Recorder: &r, Functions: map[string][]options.LocalTool{"a": {tool("t", nil)}}, Policy: granting("a__*")})
	if res, err := call(g, "a__t", `{"text":"x"}`); err != nil || res.Doc.At("/content/0/text").Text() != "x" {
		t.Errorf("%v, error %v", res, err)
	}
	if _, err := call(g, "a__none", `{}`); gate.Code(err) != "refused_lookup" {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"granted ", "done ok", "done refused_lookup"}, r.list()); diff != "" {
		t.Error(diff)
	}
	if err := g.Operator().Healthy(); err != nil {
		t.Error(err)
	}
}

// A log and a recorder both get each record, the log first.
func TestAuditAndRecorder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	var r records
	g := start(t, gateway.Config{
		Audit: file, AuditOptions: audit.Options{Node: "n"}, Recorder: &r, Snapshot: "s1",
		Functions: map[string][]options.LocalTool{"a": {tool("t", nil)}}, Policy: granting("a__*"),
	})
	if _, err := call(g, "a__t", `{}`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"granted ", "done ok"}, r.list()); diff != "" {
		t.Error(diff)
	}
	if got := logged(t, file); !slices.Equal(got, []string{"opened ", "granted ", "done ok"}) {
		t.Errorf("logged %q", got)
	}
}

func logged(t *testing.T, file string) []string {
	t.Helper()
	var all []string
	for e, err := range audit.Read(t.Context(), file, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(e.Event)+" "+e.Code)
	}
	return all
}

func TestSetPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	g := start(t, gateway.Config{
		Audit: file, AuditOptions: audit.Options{Node: "n"},
		Functions: map[string][]options.LocalTool{"a": {tool("t", nil), tool("u", nil)}}, Policy: granting("a__t"),
	})
	offered := func() string {
		tools, err := g.Operator().Tools(t.Context(), gate.Local())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools {
			names = append(names, tool.Offered)
		}
		return strings.Join(names, " ")
	}
	first := g.Operator().Policy().Revision()
	if got := offered(); got != "a__t" {
		t.Errorf("offered %q", got)
	}
	for _, text := range []string{"nonsense", "package wasmgate\n\ndeny contains \"x\" if input.tool.nmae == \"a__t\"\n"} {
		bad := granting("a__u")
		bad.Files = fs.FS(fstest.MapFS{"a.rego": {Data: []byte(text)}})
		var compile *policy.CompileError
		if err := g.SetPolicy(t.Context(), bad); !errors.As(err, &compile) || g.Operator().Policy().Revision() != first || offered() != "a__t" {
			t.Errorf("error %v, offered %q", err, offered())
		}
	}
	if err := g.SetPolicy(t.Context(), granting("a__u")); err != nil || g.Operator().Policy().Revision() == first || offered() != "a__u" {
		t.Errorf("error %v, offered %q", err, offered())
	}
	if _, err := call(g, "a__t", `{}`); gate.Code(err) != "refused_authorize" {
		t.Errorf("error %v", err)
	}
	if err := g.SetPolicy(t.Context(), granting("a__u")); err != nil { // nothing new, so nothing to record
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"opened ", "policy failed", "policy failed", "policy ok", "done refused_authorize"}, logged(t, file)); diff != "" {
		t.Error(diff)
	}
}

// A policy that cannot be recorded does not take effect.
func TestSetPolicyWithoutLog(t *testing.T) {
	g := start(t, gateway.Config{
		Audit: filepath.Join(t.TempDir(), "audit.jsonl"), AuditOptions: audit.Options{Node: "n"},
		Functions: map[string][]options.LocalTool{"a": {tool("t", nil)}},
	})
	before := g.Operator().Policy().Revision()
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.SetPolicy(t.Context(), granting("a__t")); err == nil || g.Operator().Policy().Revision() != before {
		t.Errorf("error %v, revision %s", err, g.Operator().Policy().Revision())
	}
}

// Policies change while calls pass: each call sees one of them.
func TestSetPolicyHammer(t *testing.T) {
	unraced.Long(t)
	var r records
	g := start(t, gateway.Config{Recorder: &r, Functions: map[string][]options.LocalTool{"a": {tool("t", nil)}}, Policy: granting("a__t")})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := call(g, "a__t", `{}`); err != nil && gate.Code(err) != "refused_authorize" {
					t.Error(err)
				}
			}
		})
	}
	for i := range 2 {
		wg.Go(func() {
			for range 10 {
				if err := g.SetPolicy(t.Context(), granting([]string{"a__t", "b__t"}[i])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Drain lets a call end that is under way, refuses the next, and Close after it
// finds nothing to cut off. Closing again is no error.
func TestDrainAndClose(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	began, end := make(chan struct{}), make(chan struct{})
	slow := func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		close(began)
		<-end
		return text("done"), nil
	}
	g, err := gateway.New(t.Context(), gateway.Config{
		Audit: file, AuditOptions: audit.Options{Node: "n"},
		Functions: map[string][]options.LocalTool{"a": {tool("slow", slow)}}, Policy: granting("a__*"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := call(g, "a__slow", `{}`); err != nil {
			t.Error(err)
		}
	})
	<-began
	hurry, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Drain(hurry); !errors.Is(err, context.Canceled) {
		t.Errorf("drained while a call is under way: error %v", err)
	}
	if _, err := call(g, "a__slow", `{}`); !errors.Is(err, gateway.ErrDraining) {
		t.Errorf("error %v, want ErrDraining", err)
	}
	close(end)
	if err := g.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	for range 2 {
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := logged(t, file); !slices.Equal(got, []string{"opened ", "granted ", "done ok"}) {
		t.Errorf("logged %q", got)
	}
}

func TestHTTP(t *testing.T) {
	g := start(t, gateway.Config{Audit: filepath.Join(t.TempDir(), "audit.jsonl"), AuditOptions: audit.Options{Node: "n"}})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7420"+path, nil)
		g.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := get("/healthz"); code != 200 || !strings.Contains(body, `"status":"ok"`) {
		t.Errorf("%d %s", code, body)
	}
	for _, path := range []string{"/", "/metrics", "/ui/", "/mcp/x"} {
		if code, _ := get(path); code != 404 {
			t.Errorf("%s: %d", path, code)
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, body := get("/healthz"); code != 503 || !strings.Contains(body, "failing") {
		t.Errorf("with a log that is closed: %d %s", code, body)
	}
}

// A log that holds more than it is to keep is said to be nearly full, in time.
func TestTheLogWarns(t *testing.T) {
	if disk, err := files.DiskOf(t.TempDir()); err == nil && disk.Room() < 1<<20 {
		t.Skip("the disk has no room beyond what a log leaves free")
	}
	o := audit.Options{Node: "n", MaxSize: 2000, Keep: 1}
	g := start(t, gateway.Config{Audit: filepath.Join(t.TempDir(), "audit.jsonl"), AuditOptions: o})
	healthz := func() string {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7420/healthz", nil))
		return w.Body.String()
	}
	calls := 0
	for ; calls < 100 && !strings.Contains(healthz(), "warning"); calls++ {
		call(g, "local__nothing", "{}")
	}
	if body := healthz(); calls < 5 || calls == 100 || !strings.Contains(body, `"status":"ok"`) || !strings.Contains(body, "audit.hard_max") {
		t.Errorf("after %d calls: %s", calls, body)
	}
	o.Hold = -1
	if err := g.Operator().SetAudit(o); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		call(g, "local__nothing", "{}")
	}
	if w := g.Operator().AuditWarning(); w != "" {
		t.Errorf("warned %q when nothing is held", w)
	}
}

// The profile for a text is chosen by tool, then server, then type; a policy may ask
// for a stricter one, and for no laxer one.
func TestSanitizeIsChosen(t *testing.T) {
	const dirty = `a <script>x()</script> b`
	const strict, cleaned = `a &lt;script&gt;x()&lt;/script&gt; b`, `a < script>x()</script> b`
	functions := map[string][]options.LocalTool{}
	for _, server := range []string{"one", "two", "three"} {
		functions[server] = []options.LocalTool{tool("raw", nil), tool("t", nil)}
	}
	g := start(t, gateway.Config{
		Recorder: new(records), Functions: functions,
		Policy: gateway.Policy{
			Options: policy.Options{Grants: []policy.Grant{{To: []string{"*"}, Servers: []string{"one", "two", "three"}}}},
			Files:   fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\n\nobligations contains {\"type\": \"sanitize\", \"profile\": \"strict\"} if input.tool.name == \"one__raw\"\n\nobligations contains {\"type\": \"sanitize\", \"profile\": \"off\"} if input.tool.name == \"three__t\"\n")}},
		},
		Sanitize: clean.Sanitize{
			Tools: []clean.Rule{{Pattern: "one__*", Profile: "off"}, {Pattern: "two__t", Profile: "strict"}}, Servers: map[string]string{"two": "off"},
		},
	})
	for name, want := range map[string]string{"one__t": dirty, "two__t": strict, "two__raw": dirty, "three__t": cleaned, "one__raw": strict} {
		res, err := call(g, name, `{"text":`+fmt.Sprintf("%q", dirty)+`}`)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := res.Doc.At("/content/0/text").Text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
