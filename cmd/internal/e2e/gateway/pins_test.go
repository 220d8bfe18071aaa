//go:build unix

package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// changing is an MCP server whose definitions change while it runs.
type changing struct{ server *mcp.Server }

func newChanging() changing {
	return changing{mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, nil)}
}

// start returns the server's URL.
func (c changing) start(t *testing.T) string {
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return c.server }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	c.declare("read", "reads")
	return web.URL
}

func (c changing) declare(name, description string) {
	c.server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "fine"}}}, nil
		})
}

// firstTrust is how long the first trust of a server may be open, and some more.
const firstTrust = 2500 * time.Millisecond

// testPins changes the definitions of a server under a running gateway, and while
// none runs.
func testPins(t *testing.T, p *e2e.Program) {
	up := newChanging()
	url := up.start(t)
	up.declare("write", "writes")
	pl := p.Place(t, "servers:\n  up: {url: "+url+"}\n")
	pl.Write("policies/all.rego", "package wasmgate\n\nallow contains \"all\"\n")
	gw := pl.Serve()
	timelimit.Wait(t, "the server is ready", func() bool { return strings.Contains(pl.Must("tools"), "up__read") })
	watchers := []*watcher{watch(t, gw.URL, "2025-11-25"), watch(t, gw.URL, "2026-07-28")}
	w := e2e.MustWire(t, gw.URL)
	offered := func(name string, want bool) {
		t.Helper()
		for _, one := range watchers {
			if one.offers(t, name) != want {
				t.Errorf("%s is offered: %t", name, !want)
			}
		}
		if a := w.MustCall(t, name, "{}"); (e2e.Code(a) == "") != want || !want && e2e.Code(a) != "refused_pin" {
			t.Errorf("%s is called: %s %+v", name, a.Result, a.Error)
		}
	}
	offered("up__read", true)
	for _, one := range watchers {
		one.forget()
	}

	time.Sleep(firstTrust) // what comes within it is trusted
	up.declare("read", "reads, and sends")
	up.declare("late", "comes late")
	timelimit.Wait(t, "the change is quarantined", func() bool { return e2e.Code(w.MustCall(t, "up__read", "{}")) == "refused_pin" })
	for _, one := range watchers {
		one.told(t)
		one.forget()
	}
	offered("up__read", false)
	offered("up__late", false)
	offered("up__write", true)
	if s := pl.Must("status"); !strings.Contains(s, "quarantined: up: 2 not approved: up__late (new), up__read (changed): look first with `wasmgate pin diff up`") {
		t.Errorf("status: %s", s)
	}
	if o := pl.Run("pin", "diff", "up__read"); o.Code != 3 || !strings.Contains(o.Stdout, `+ "reads, and sends"`) {
		t.Errorf("diff: exit %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
	if e := pl.LastDone("up__read"); e.Code != "refused_pin" || e.Server != "up" {
		t.Errorf("recorded %s", e.Raw)
	}

	pl.Must("pin", "approve", "--yes", "up__read")
	offered("up__read", true)
	for _, one := range watchers {
		one.told(t)
	}
	offered("up__late", false)
	checkLockfile(t, pl, offered)

	gw.Signal(os.Interrupt)
	gw.Wait()
	up.declare("write", "writes everywhere")
	gw = pl.Serve()
	w, watchers = e2e.MustWire(t, gw.URL), []*watcher{watch(t, gw.URL, "2025-11-25")}
	timelimit.Wait(t, "the server has started", func() bool { return !strings.Contains(pl.Must("tools"), "up__write") })
	offered("up__write", false)
	offered("up__read", true)
	pl.Verify()
}

// checkLockfile changes the lockfile as git does.
func checkLockfile(t *testing.T, pl *e2e.Place, offered func(name string, want bool)) {
	t.Helper()
	b, err := os.ReadFile(pl.File("wasmgate.lock"))
	if err != nil {
		t.Fatal(err)
	}
	const merged = "wasmgate-lock 1\n<<<<<<< HEAD\n"
	pl.Write("wasmgate.lock", merged)
	timelimit.Wait(t, "status tells of the conflict", func() bool {
		s := pl.Must("status")
		return strings.Contains(s, "wasmgate.lock:2: a merge conflict") && strings.Contains(s, "last good")
	})
	offered("up__read", true)
	if o := pl.Run("pin", "approve", "--yes", "up__late"); o.Code != 2 || !strings.Contains(o.Stderr, "merge conflict") {
		t.Errorf("approve: exit %d: %s", o.Code, o.Stderr)
	}
	before, block, _ := strings.Cut(string(b), "tool up read\n")
	_, after, _ := strings.Cut(block, "\n")
	pl.Write("wasmgate.lock", before+after)
	timelimit.Wait(t, "an approval that was taken back does not hold", func() bool {
		return strings.Contains(pl.Must("pin", "list"), "quarantined new") && !strings.Contains(pl.Must("status"), "conflict")
	})
	offered("up__read", false)
	pl.Write("wasmgate.lock", string(b))
	timelimit.Wait(t, "the lockfile is as it was", func() bool { return strings.Contains(pl.Must("tools"), "up__read") })
}
