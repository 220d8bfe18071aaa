//go:build unix

package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testReload changes the policy under a running gateway.
func testReload(t *testing.T, p *e2e.Program) {
	up := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	pl := p.Place(t, "servers:\n  up: {url: "+up.Start(t)+"}\n")
	gw := pl.Serve()
	timelimit.Wait(t, "the server is ready", func() bool { return strings.Contains(pl.Must("tools", "--all"), "up__echo") })
	watchers := []*watcher{watch(t, gw.URL, "2025-11-25"), watch(t, gw.URL, "2026-07-28")}
	for _, w := range watchers {
		if w.offers(t, "up__echo") {
			t.Error("the tool is offered before it is granted")
		}
		w.forget()
	}
	pl.Must("grant", "--yes", "up__*")
	for _, w := range watchers {
		if !w.offers(t, "up__echo") {
			t.Error("the tool is not offered at once")
		}
		w.told(t)
	}
	w := e2e.MustWire(t, gw.URL)
	if a := w.MustCall(t, "up__echo", "{}"); !strings.Contains(string(a.Result), "fine") {
		t.Errorf("a granted call: %s %+v", a.Result, a.Error)
	}
	checkBadPolicy(t, pl, w)
	pl.Must("revoke", "up__*")
	if a := w.MustCall(t, "up__echo", "{}"); a.Error == nil {
		t.Errorf("a call that is granted no more: %s", a.Result)
	}
	pl.Verify()
}

// checkBadPolicy adds a policy that does not compile, and fixes it.
func checkBadPolicy(t *testing.T, pl *e2e.Place, w *e2e.Wire) {
	t.Helper()
	pl.Write("policies/bad.rego", "package wasmgate\nallow contains if nonsense(")
	timelimit.Wait(t, "status tells that the policy does not compile", func() bool {
		s := pl.Must("status")
		return strings.Contains(s, "bad.rego:2") && strings.Contains(s, "last good one")
	})
	if a := w.MustCall(t, "up__echo", "{}"); !strings.Contains(string(a.Result), "fine") {
		t.Errorf("under the last good policy: %s %+v", a.Result, a.Error)
	}
	if o := pl.Run("policy", "check"); o.Code != 3 {
		t.Errorf("policy check of what does not compile: exit %d, want 3", o.Code)
	}
	pl.Write("policies/bad.rego", "package wasmgate\n\ndeny contains \"closed\" if input.tool.server == \"up\"\n")
	timelimit.Wait(t, "the policy that compiles is in use", func() bool { return w.MustCall(t, "up__echo", "{}").Error != nil })
	if s := pl.Must("status"); strings.Contains(s, "bad.rego") {
		t.Errorf("status still has a problem: %s", s)
	}
	if err := os.Remove(pl.File("policies/bad.rego")); err != nil {
		t.Fatal(err)
	}
	timelimit.Wait(t, "the policy without it is in use", func() bool { return w.MustCall(t, "up__echo", "{}").Error == nil })
}

// A watcher is a client that hears when the tools change.
type watcher struct {
	session *mcp.ClientSession
	changed chan bool
}

func watch(t *testing.T, url, revision string) *watcher {
	t.Helper()
	w := &watcher{changed: make(chan bool, 99)}
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { w.changed <- true },
	})
	var err error
	w.session, err = c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.session.Close() })
	return w
}

func (w *watcher) offers(t *testing.T, name string) bool {
	t.Helper()
	list, err := w.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == name })
}

// forget drops the changes that the client has heard of so far.
func (w *watcher) forget() {
	for len(w.changed) > 0 {
		<-w.changed
	}
}

func (w *watcher) told(t *testing.T) {
	t.Helper()
	select {
	case <-w.changed:
	case <-time.After(timelimit.Patience(t)):
		t.Errorf("a client of %s was not told that the tools have changed", w.session.InitializeResult().ProtocolVersion)
	}
}

// testRefusedStarts starts gateways that must not run.
func testRefusedStarts(t *testing.T, p *e2e.Program) {
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	started := "servers:\n  x: {command: sh, args: [-c, 'echo > started']}\n"
	tests := map[string]struct {
		config, listen string
		code           int
		says           []string
	}{
		"a port in use": {started, ln.Addr().String(), 1, []string{fmt.Sprintf("pid %d", os.Getpid()), ln.Addr().String(), "--listen"}},
		"an address beyond loopback": {"listen: 0.0.0.0:7420\n" + started, "", 2,
			[]string{"listen", "auth names no way", "tls", "public_url", "127.0.0.1"}},
		"an address beyond loopback as a flag": {started, "0.0.0.0:7420", 2, []string{"--listen", "auth names no way", "tls", "public_url"}},
		"a broken configuration": {"lisen: 1\n" + started + "  X_: {url: 'ftp://h'}\n  y: {timeout: soon, url: 'http://127.0.0.1:1'}\naudit: {path: 7}\n", "", 2,
			[]string{"wasmgate.yaml:3: lisen", "wasmgate.yaml:6: servers.X_", "wasmgate.yaml:7: servers.y.timeout", "audit.path"}},
		"a key of a later version":         {"tenants: {}\n" + started, "", 2, []string{"tenants", "this version of wasmgate does not have it"}},
		"an audit log that is a folder":    {"audit: {path: policies}\n" + started, "127.0.0.1:0", 1, []string{"audit", "policies"}},
		"an audit log that cannot be made": {"audit: {path: wasmgate.yaml/audit.jsonl}\n" + started, "127.0.0.1:0", 1, []string{"audit", "wasmgate.yaml/"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pl := p.Place(t, tt.config)
			args := []string{"serve"}
			if tt.listen != "" {
				args = append(args, "--listen", tt.listen)
			}
			o := pl.Run(args...)
			if o.Code != tt.code {
				t.Errorf("exit %d, want %d", o.Code, tt.code)
			}
			for _, want := range tt.says {
				e2e.Holds(t, o.Stderr, want)
			}
			if _, err := os.Stat(pl.File("started")); err == nil {
				t.Error("a server was started")
			}
		})
	}
}

// testAuditFull fills the space that the audit log may take: no record, no
// call.
func testAuditFull(t *testing.T, p *e2e.Program) {
	up := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	pl := p.Place(t, "servers:\n  up: {url: "+up.Start(t)+"}\n")
	pl.Must("grant", "--yes", "up__*")
	const blocks = 64 // of 512 or 1024 bytes, as the shell counts
	limited := append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, blocks), p.Path}, pl.Args("--json", "serve", "--listen", "127.0.0.1:0")...)
	gw := e2e.Serving(t, pl.Command(context.WithoutCancel(t.Context()), "sh", limited...))
	health := strings.TrimSuffix(gw.URL, "/mcp") + "/healthz"
	if status, body := e2e.Get(t, health); status != http.StatusOK {
		t.Fatalf("healthz = %d %s", status, body)
	}
	w := e2e.MustWire(t, gw.URL)
	answered, refused := 0, ""
	for range blocks * 1024 / 500 { // a record takes more
		if refused = e2e.Code(w.MustCall(t, "up__echo", "{}")); refused != "" {
			break
		}
		answered++
	}
	if refused != "refused_record" {
		t.Fatalf("after %d calls: %q, want refused_record", answered, refused)
	}
	seen := len(up.Calls("echo"))
	for range 5 {
		if got := e2e.Code(w.MustCall(t, "up__echo", "{}")); got != "refused_record" {
			t.Errorf("a call without a record: %q", got)
		}
	}
	if n := len(up.Calls("echo")); n != seen {
		t.Errorf("the server saw %d calls that are not recorded", n-seen)
	}
	if status, body := e2e.Get(t, health); status != http.StatusServiceUnavailable || !strings.Contains(body, "audit") {
		t.Errorf("healthz = %d %s, want 503", status, body)
	}
	e2e.Holds(t, pl.Must("status"), "all calls are refused")
	pl.Verify()
}

// testAuditHold writes more than audit.keep keeps: young records stay, status and healthz
// say in time what becomes of them, and the configuration can be changed meanwhile.
func testAuditHold(t *testing.T, p *e2e.Program) {
	if disk, err := files.DiskOf(t.TempDir()); err == nil && disk.Room() < 1<<20 {
		t.Skip("the disk has no room beyond what a log leaves free")
	}
	const log = "policy: {paths: [policies], timeout: 5s}\naudit: {max_size: 4KiB, keep: 2%s}\n"
	pl := p.Place(t, strings.TrimPrefix(fmt.Sprintf(log, ""), "policy: {paths: [policies], timeout: 5s}\n"))
	gw := pl.Serve()
	health := strings.TrimSuffix(gw.URL, "/mcp") + "/healthz"
	w := e2e.MustWire(t, gw.URL)
	warned := func() bool { _, body := e2e.Get(t, health); return strings.Contains(body, "audit.hard_max") }
	calls := 0
	for ; calls < 500 && !warned(); calls++ {
		w.MustCall(t, "local__nothing", "{}") // is recorded
	}
	first := pl.File("state/audit-000001.jsonl")
	if _, err := os.Stat(first); err != nil || calls < 10 {
		t.Errorf("warned after %d calls; the first file: %v", calls, err)
	}
	e2e.Holds(t, pl.Must("status"), "the oldest file is deleted")
	pl.Write("wasmgate.yaml", "version: 1\n"+fmt.Sprintf(log, ", hold: 0s"))
	timelimit.Wait(t, "the log to keep to audit.keep", func() bool {
		w.MustCall(t, "local__nothing", "{}")
		_, err := os.Stat(first)
		return os.IsNotExist(err) && !warned()
	})
	if status := pl.Must("status"); strings.Contains(status, "restart") || strings.Contains(status, "audit.hold") {
		t.Errorf("status: %s", status)
	}
	pl.Verify()
}

// testReadme does what the README tells a newcomer to do.
func testReadme(t *testing.T, _ *e2e.Program) {
	const usual = "127.0.0.1:7420"
	args := []string{"run", "./cmd/wasmgate", "serve"}
	if e2e.Listens(t, usual) {
		t.Logf("%s is taken, another port will do", usual)
		args = append(args, "--listen", "127.0.0.1:0")
	}
	gw, url := goRun(t, args)
	if len(args) == 3 && url != "http://"+usual+"/mcp" {
		t.Errorf("MCP at %s", url)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	for _, want := range []string{"local__hash", "local__json_query", "local__text_diff", "local__html_to_text", "local__csv_query"} {
		e2e.Holds(t, strings.Join(names, " "), want)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__hash", Arguments: map[string]string{"text": "hello", "algorithm": "sha256"}})
	if err != nil {
		t.Fatal(err)
	}
	e2e.Holds(t, e2e.FirstText(res), e2e.Digest("hello"))
	session.Close()
	if err := syscall.Kill(-gw.PID(), syscall.SIGINT); err != nil { // as the terminal's interrupt reaches all of a job
		t.Fatal(err)
	}
	gw.Wait() // with the code of go run, which is 1 after any interrupt
	timelimit.Wait(t, "the port is free", func() bool {
		return !e2e.Listens(t, strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
	})
}

// goRun runs the program as a job of its own, and returns the URL that it
// prints. Its settings and its state are a newcomer's: none.
func goRun(t *testing.T, args []string) (gw *e2e.Process, url string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := exec.CommandContext(context.WithoutCancel(t.Context()), "go", args...)
	c.Dir = "../../../.."
	c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir, "GOENV="+e2e.GoEnv(t))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run does not pass signals on
	c.WaitDelay = timelimit.Patience(t)
	r, w := io.Pipe()
	c.Stdout = w
	gw = e2e.Start(t, c)
	t.Cleanup(func() { _ = syscall.Kill(-gw.PID(), syscall.SIGKILL) })
	go func() { <-gw.Ended; w.Close() }()
	return gw, readURL(t, r)
}

// readURL returns the URL that a gateway prints for a person.
func readURL(t *testing.T, r io.Reader) string {
	t.Helper()
	var said strings.Builder
	b := make([]byte, 4096)
	for {
		n, err := r.Read(b)
		said.Write(b[:n])
		if m := mcpAt.FindStringSubmatch(said.String()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return m[1]
		}
		if err != nil {
			t.Fatalf("the gateway has said no URL: %q", said.String())
		}
	}
}

var mcpAt = regexp.MustCompile(`MCP at +(http://\S+/mcp)\n`)
