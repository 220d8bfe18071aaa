//go:build unix

package e2e

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

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testKill kills the gateway in the middle of 1,000 calls of 16 clients, three
// times: the log verifies, it has every call that the server saw, and no
// process is left.
func testKill(t *testing.T, p *program) {
	const calls, clients = 1000, 16
	var gw atomic.Pointer[process]
	var left atomic.Int64 // calls until the gateway is killed
	up := &stub{tools: `[{"name":"count","inputSchema":{"type":"object","properties":{"n":{"type":"string"}}}}]`}
	up.answer = func(w http.ResponseWriter, r *http.Request, c stubCall) {
		if left.Add(-1) == 0 {
			_ = gw.Load().cmd.Process.Kill()
		}
		answerFine(w, r, c)
	}
	url := up.start(t)
	pl := p.place(t, "")
	mark := "mark-" + filepath.Base(pl.dir)
	pl.write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n  up: {url: "+url+"}\n"+pl.shell(mark))
	pl.must("grant", "--yes", "up__*")
	pl.must("grant", "--yes", "sh__*")
	for round, after := range []int64{100, 400, 800} {
		gw.Store(pl.serve())
		mustWire(t, gw.Load().url).mustCall(t, "sh__hello", "{}")
		timelimit.Wait(t, "the stdio server and its child run", func() bool { return len(processes(t, mark)) >= 2 })
		left.Store(after)
		failed := callAll(t, gw.Load().url, round, calls, clients)
		if code := gw.Load().wait(); code != -1 {
			t.Fatalf("exit %d, want the death by a signal", code)
		}
		if failed == 0 || failed == calls {
			t.Fatalf("%d of %d calls failed: the gateway was not killed among them", failed, calls)
		}
		none(t, mark)
		pl.verify()
	}
	granted := make(map[string]bool)
	for _, e := range pl.log() {
		if e.Event == "granted" {
			granted[e.ArgsSHA256] = true
		}
	}
	seen := up.calls("count")
	if len(seen) < 100+400+800 {
		t.Errorf("the server saw %d calls", len(seen))
	}
	for _, args := range seen {
		if !granted[digest(args)] {
			t.Errorf("the server saw %s, of which there is no granted record", args)
		}
	}
	pl.serve() // goes on in the same log
	pl.verify()
}

// callAll makes calls from several clients at once, each with arguments of its
// own, and returns how many failed.
func callAll(t *testing.T, url string, round, calls, clients int) int {
	var failed atomic.Int64
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			w, err := dialWire(t.Context(), url)
			if err != nil {
				w = &wire{url: url, stateless: true} // killed already
			}
			for i := c; i < calls; i += clients {
				if _, err := w.call(t.Context(), "up__count", fmt.Sprintf(`{"n":"%d-%d"}`, round, i)); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(failed.Load())
}

// slow is a server whose call begins and then waits to be let go.
type slow struct {
	stub
	began, release chan struct{}
}

func newSlow() *slow {
	s := &slow{began: make(chan struct{}, 9), release: make(chan struct{})}
	s.tools = `[{"name":"slow","inputSchema":{"type":"object"}}]`
	s.answer = func(w http.ResponseWriter, r *http.Request, c stubCall) {
		s.began <- struct{}{}
		select {
		case <-s.release:
			answerFine(w, r, c)
		case <-r.Context().Done():
		}
	}
	return s
}

// testDrain shows that the first SIGTERM lets a call end, and that a restart
// continues the log.
func testDrain(t *testing.T, p *program) {
	up := newSlow()
	pl := p.place(t, "")
	mark := "mark-" + filepath.Base(pl.dir)
	pl.write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n  up: {url: "+up.start(t)+"}\n"+pl.shell(mark))
	pl.must("grant", "--yes", "up__*")
	gw := pl.serve()
	w, late := mustWire(t, gw.url), mustWire(t, gw.url)
	done := make(chan answered, 1)
	go func() {
		a, err := w.call(context.WithoutCancel(t.Context()), "up__slow", "{}")
		if err != nil {
			t.Errorf("the call under way was cut off: %v", err)
		}
		done <- a
	}()
	<-up.began
	gw.signal(syscall.SIGTERM)
	timelimit.Wait(t, "new calls are refused", func() bool {
		a, err := late.call(t.Context(), "up__none", "{}")
		return err != nil || a.Error != nil && strings.Contains(a.Error.Message, "shutting down")
	})
	for _, msg := range []string{`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`} {
		for _, w := range []*wire{late, {url: gw.url, stateless: true}} {
			if h, b, err := w.post(t.Context(), "", msg); err != nil || h.Get("Retry-After") == "" || !bytes.Contains(b, []byte(`"id":7`)) {
				t.Errorf("while it drains: %v %s %v", h, b, err)
			}
		}
	}
	close(up.release)
	if a := <-done; !strings.Contains(string(a.Result), "fine") {
		t.Errorf("the call under way: %s %+v", a.Result, a.Error)
	}
	if code := gw.wait(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	none(t, mark)
	before := pl.log()

	gw = pl.serve()
	mustWire(t, gw.url).mustCall(t, "up__slow", "{}")
	gw.signal(syscall.SIGTERM)
	if code := gw.wait(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	pl.verify()
	if after := pl.log(); len(after) <= len(before) || after[len(before)-1].Raw != before[len(before)-1].Raw {
		t.Errorf("the log has %d records after a restart, and had %d", len(after), len(before))
	}
	if _, err := os.Stat(pl.file("state/control.sock")); err == nil {
		t.Error("the control socket is still there")
	}
}

// testSecondSignal shows that the second SIGTERM ends at once.
func testSecondSignal(t *testing.T, p *program) {
	up := newSlow()
	pl := p.place(t, "")
	mark := "mark-" + filepath.Base(pl.dir)
	pl.write("wasmgate.yaml", "version: 1\npolicy: {timeout: 5s}\nservers:\n  up: {url: "+up.start(t)+"}\n"+pl.shell(mark))
	pl.must("grant", "--yes", "up__*")
	gw := pl.serve()
	w, late := mustWire(t, gw.url), mustWire(t, gw.url)
	cut := make(chan error, 1)
	go func() {
		_, err := w.call(context.WithoutCancel(t.Context()), "up__slow", "{}")
		cut <- err
	}()
	<-up.began
	gw.signal(syscall.SIGTERM)
	timelimit.Wait(t, "the gateway drains", func() bool {
		a, err := late.call(t.Context(), "up__none", "{}")
		return err != nil || a.Error != nil && strings.Contains(a.Error.Message, "shutting down")
	})
	select {
	case <-gw.ended:
		t.Fatal("the gateway ended with a call under way")
	default:
	}
	gw.signal(syscall.SIGTERM)
	if code := gw.wait(); code == 0 {
		t.Error("exit 0, though a call was cut off")
	}
	if err := <-cut; err == nil {
		t.Error("the call that was cut off was answered")
	}
	none(t, mark)
	pl.verify()
}
