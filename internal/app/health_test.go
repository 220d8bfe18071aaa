package app_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestReady: a gateway is ready once the servers that it requires are. It says so on the MCP listener
// and on the metrics listener, and what anyone may read there names no server.
func TestReady(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\ntelemetry: {metrics: {listen: \"127.0.0.1:0\"}}\nservers: {secretive: {command: no-such-program, required: true}, other: {command: no-such-program}}\n")
	a := start(t, cfg)
	url, _, _ := run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	timelimit.Wait(t, "metrics", func() bool { return a.Overview.Status().Metrics != "" })
	for _, at := range []string{strings.TrimSuffix(url, "/mcp"), strings.TrimSuffix(a.Overview.Status().Metrics, "/metrics")} {
		status, body := get(t, at+"/readyz")
		if status != http.StatusServiceUnavailable || strings.TrimSpace(body) != `{"parts":["servers"],"status":"not ready"}` {
			t.Errorf("%s: %d %s", at, status, body)
		}
		for _, path := range []string{"/livez", "/healthz"} {
			if status, body := get(t, at+path); status != http.StatusOK {
				t.Errorf("%s: %d %s", at+path, status, body)
			}
		}
	}
	if _, body := get(t, a.Overview.Status().Metrics); !strings.Contains(body, "wasmgate_ready 0") || !strings.Contains(body, `wasmgate_server_up{wasmgate_server="secretive"} 0`) {
		t.Error("the metrics say that it is ready")
	}
	if p := strings.Join(a.Overview.Status().Problems, "\n"); !strings.Contains(p, "not ready: secretive is required and faulted") || strings.Contains(p, "other is required") {
		t.Errorf("problems %q", p)
	}
	since := a.Overview.Status().Servers
	write(t, cfg.File, "version: 1\nservers: {secretive: {command: no-such-program, required: false}, other: {command: no-such-program}}\n")
	timelimit.Wait(t, "readiness", func() bool {
		status, _ := get(t, strings.TrimSuffix(url, "/mcp")+"/readyz")
		return status == http.StatusOK
	})
	if now := a.Overview.Status().Servers; now[0].Since.Sub(since[0].Since) > 0 && now[0].Phase != since[0].Phase {
		t.Error("the server was connected anew, though nothing of its connection has changed")
	}
}

// TestServiceManager: the service manager is notified when clients can come, that the gateway is alive,
// and how it ends.
func TestServiceManager(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no systemd")
	}
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "20000")
	a := start(t, load(t, "version: 1\n"))
	_, _, end := run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	heard := func(want string) {
		t.Helper()
		_ = manager.SetReadDeadline(time.Now().Add(time.Minute))
		for b := make([]byte, 1000); ; {
			n, err := manager.Read(b)
			if err != nil {
				t.Fatalf("waited in vain for %s: %v", want, err)
			}
			if strings.HasPrefix(string(b[:n]), want) {
				return
			}
		}
	}
	heard("READY=1")
	heard("WATCHDOG=1")
	heard("WATCHDOG=1")
	end()
	heard("STOPPING=1")
	heard("STATUS=draining: 0 calls under way")
}

// TestAnchor: the head of the log is kept in a file and given to a command, also what is
// written last, and with it a log that was cut is found.
func TestAnchor(t *testing.T) {
	unraced.Long(t)
	cfg := load(t, "version: 1\naudit: {anchor: {file: heads.jsonl, command: [sh, -c, \"cat >> given.jsonl\"], every: 1s}}\n")
	dir := filepath.Dir(cfg.File)
	t.Chdir(dir)
	a := start(t, cfg)
	_, _, end := run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	heads := func(name string) (all []audit.Head) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil
		}
		for line := range strings.Lines(string(b)) {
			var l struct{ Head, Path string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				return all // half written
			}
			h, err := audit.ParseHead(l.Head)
			if err != nil || l.Path != cfg.Audit.Path {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, h)
		}
		return all
	}
	timelimit.Wait(t, "a head", func() bool { return len(heads("heads.jsonl")) > 0 && len(heads("given.jsonl")) > 0 })
	for range 3 {
		if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
			t.Fatal(err)
		}
	}
	end()
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	kept := heads("heads.jsonl")
	if given := heads("given.jsonl"); !slices.Equal(kept, given) {
		t.Errorf("the file has %v, the command %v", kept, given)
	}
	last := kept[len(kept)-1]
	if anchor, err := background.LastAnchor(filepath.Join(dir, "heads.jsonl")); err != nil || anchor != last {
		t.Errorf("the last head is %v, %v; want %v", anchor, err, last)
	}
	report, err := audit.VerifyFiles([]string{cfg.Audit.Path}, last)
	if err != nil || report.Last != last {
		t.Errorf("the log ends with %v, kept was %v: %v", report.Last, last, err)
	}
	b, err := os.ReadFile(cfg.Audit.Path)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.LastIndexByte(strings.TrimSuffix(string(b), "\n"), '\n')
	write(t, cfg.Audit.Path, string(b[:cut+1]))
	if _, err := audit.VerifyFiles([]string{cfg.Audit.Path}, last); err == nil {
		t.Error("a log that was cut holds against the head")
	}
}

// TestAnchorFails: a failure to keep the head elsewhere is reported, and does not keep calls from
// passing.
func TestAnchorFails(t *testing.T) {
	unraced.Long(t)
	a := start(t, load(t, "version: 1\naudit: {anchor: {command: [sh, -c, \"echo no space >&2; exit 3\"], every: 1s}}\n"))
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	want := "audit.anchor: sh: exit status 3: no space"
	timelimit.Wait(t, want, func() bool { return slices.Contains(a.Overview.Status().Problems, want) })
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
		t.Error(err)
	}
}
