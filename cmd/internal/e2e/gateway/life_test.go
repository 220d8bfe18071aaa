//go:build unix

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testKill kills the gateway in the middle of 1,000 calls of 16 clients, three
// times: the log verifies, it has every call that the server saw, and no
// process is left.
func testKill(t *testing.T, p *e2e.Program) {
	const calls, clients = 1000, 16
	var gw atomic.Pointer[e2e.Process]
	var left atomic.Int64 // calls until the gateway is killed
	up := &e2e.Stub{Tools: `[{"name":"count","inputSchema":{"type":"object","properties":{"n":{"type":"string"}}}}]`}
	up.Answer = func(w http.ResponseWriter, r *http.Request, c e2e.StubCall) {
		if left.Add(-1) == 0 {
			_ = gw.Load().Cmd.Process.Kill()
		}
		e2e.AnswerFine(w, r, c)
	}
	url := up.Start(t)
	pl := p.Place(t, "")
	mark := "mark-" + filepath.Base(pl.Dir)
	pl.Write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n  up: {url: "+url+"}\n"+shell(pl, mark))
	pl.Must("grant", "--yes", "up__*")
	pl.Must("grant", "--yes", "sh__*")
	for round, after := range []int64{100, 400, 800} {
		gw.Store(pl.Serve())
		e2e.MustWire(t, gw.Load().URL).MustCall(t, "sh__hello", "{}")
		timelimit.Wait(t, "the stdio server and its child run", func() bool { return len(e2e.Processes(t, mark)) >= 2 })
		left.Store(after)
		failed := callAll(t, gw.Load().URL, round, calls, clients)
		if code := gw.Load().Wait(); code != -1 {
			t.Fatalf("exit %d, want the death by a signal", code)
		}
		if failed == 0 || failed == calls {
			t.Fatalf("%d of %d calls failed: the gateway was not killed among them", failed, calls)
		}
		e2e.WaitGone(t, mark)
		pl.Verify()
	}
	granted := make(map[string]bool)
	for _, e := range pl.Log() {
		if e.Event == "granted" {
			granted[e.ArgsSHA256] = true
		}
	}
	seen := up.Calls("count")
	if len(seen) < 100+400+800 {
		t.Errorf("the server saw %d calls", len(seen))
	}
	for _, args := range seen {
		if !granted[e2e.Digest(args)] {
			t.Errorf("the server saw %s, and there is no granted record of it", args)
		}
	}
	pl.Serve() // goes on in the same log
	pl.Verify()
}

// callAll makes calls from several clients at once, each with arguments of its
// own, and returns how many failed.
func callAll(t *testing.T, url string, round, calls, clients int) int {
	var failed atomic.Int64
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			w, err := e2e.DialWire(t.Context(), url)
			if err != nil {
				w = &e2e.Wire{URL: url, Stateless: true} // killed already
			}
			for i := c; i < calls; i += clients {
				if _, err := w.Call(t.Context(), "up__count", fmt.Sprintf(`{"n":"%d-%d"}`, round, i)); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(failed.Load())
}

// testDrain shows that the first SIGTERM lets a call end, and that a restart
// continues the log.
func testDrain(t *testing.T, p *e2e.Program) {
	up := e2e.NewSlow()
	pl := p.Place(t, "")
	mark := "mark-" + filepath.Base(pl.Dir)
	pl.Write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n  up: {url: "+up.Start(t)+"}\n"+shell(pl, mark))
	pl.Must("grant", "--yes", "up__*")
	gw := pl.Serve()
	w, late := e2e.MustWire(t, gw.URL), e2e.MustWire(t, gw.URL)
	done := make(chan e2e.Answered, 1)
	go func() {
		a, err := w.Call(context.WithoutCancel(t.Context()), "up__slow", "{}")
		if err != nil {
			t.Errorf("the call under way was cut off: %v", err)
		}
		done <- a
	}()
	<-up.Began
	gw.Signal(syscall.SIGTERM)
	timelimit.Wait(t, "new calls are refused", func() bool {
		a, err := late.Call(t.Context(), "up__none", "{}")
		return err != nil || a.Error != nil && strings.Contains(a.Error.Message, "shutting down")
	})
	for _, msg := range []string{`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`} {
		for _, w := range []*e2e.Wire{late, {URL: gw.URL, Stateless: true}} {
			if h, b, err := w.Post(t.Context(), "", msg); err != nil || h.Get("Retry-After") == "" || !bytes.Contains(b, []byte(`"id":7`)) {
				t.Errorf("while it drains: %v %s %v", h, b, err)
			}
		}
	}
	close(up.Release)
	if a := <-done; !strings.Contains(string(a.Result), "fine") {
		t.Errorf("the call under way: %s %+v", a.Result, a.Error)
	}
	if code := gw.Wait(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	e2e.WaitGone(t, mark)
	before := pl.Log()

	gw = pl.Serve()
	e2e.MustWire(t, gw.URL).MustCall(t, "up__slow", "{}")
	gw.Signal(syscall.SIGTERM)
	if code := gw.Wait(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	pl.Verify()
	if after := pl.Log(); len(after) <= len(before) || after[len(before)-1].Raw != before[len(before)-1].Raw {
		t.Errorf("the log has %d records after a restart, and had %d", len(after), len(before))
	}
	if _, err := os.Stat(pl.File("state/control.sock")); err == nil {
		t.Error("the control socket is still there")
	}
}

// testSecondSignal shows that the second SIGTERM ends at once.
func testSecondSignal(t *testing.T, p *e2e.Program) {
	up := e2e.NewSlow()
	pl := p.Place(t, "")
	mark := "mark-" + filepath.Base(pl.Dir)
	pl.Write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n  up: {url: "+up.Start(t)+"}\n"+shell(pl, mark))
	pl.Must("grant", "--yes", "up__*")
	gw := pl.Serve()
	w, late := e2e.MustWire(t, gw.URL), e2e.MustWire(t, gw.URL)
	cut := make(chan error, 1)
	go func() {
		_, err := w.Call(context.WithoutCancel(t.Context()), "up__slow", "{}")
		cut <- err
	}()
	<-up.Began
	gw.Signal(syscall.SIGTERM)
	timelimit.Wait(t, "the gateway drains", func() bool {
		a, err := late.Call(t.Context(), "up__none", "{}")
		return err != nil || a.Error != nil && strings.Contains(a.Error.Message, "shutting down")
	})
	select {
	case <-gw.Ended:
		t.Fatal("the gateway ended with a call under way")
	default:
	}
	gw.Signal(syscall.SIGTERM)
	if code := gw.Wait(); code == 0 {
		t.Error("exit 0, though a call was cut off")
	}
	if err := <-cut; err == nil {
		t.Error("the call that was cut off was answered")
	}
	e2e.WaitGone(t, mark)
	pl.Verify()
}
