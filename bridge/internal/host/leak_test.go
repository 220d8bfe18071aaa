package host_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestLeakOverCalls: over thousands of calls, by clients of both protocol revisions, to a server on
// stdio and one over HTTP, each connects once, and the numbers of goroutines and sockets do not
// grow.
func TestLeakOverCalls(t *testing.T) {
	unraced.Long(t)
	calls := 1000
	if s := os.Getenv(rig.RepetitionsEnv); s != "" {
		var err error
		if calls, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	var hellos, conns atomic.Int64
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		msg, err := gate.ParseDoc(b)
		if err != nil || msg.Get("id").IsZero() {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		switch msg.Get("method").Text() {
		case "initialize":
			hellos.Add(1)
			answer = `"result":` + rig.Initialized
		case "tools/list":
			answer = `"result":{"tools":[` + rig.EchoTool + `]}`
		case "tools/call":
			answer = `"result":{"content":[]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, msg.Get("id"), answer)
	}))
	web.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	pipe := rig.Child("echoes")
	pipe.Server = "pipe"
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{pipe, {Server: "web", URL: web.URL, Tools: rig.Options()}}})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, r := rig.NewGate(t, f)
	h, err := host.New(host.Config{Config: dispatch.Config{Do: g.Do, Tools: g.Tools}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(h)
	t.Cleanup(front.Close)
	session := rig.OpenSession(t, front.URL)
	if resp, err := rig.Post(t.Context(), front.URL, rig.Old, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err == nil {
		resp.Body.Close()
	}

	call := func(i int) error {
		era, session, server := rig.Old, session, []string{"pipe", "web"}[i/2%2]
		if i%2 == 1 {
			era, session = rig.Newest, ""
		}
		params := `"name":"` + server + `__echo","arguments":{}`
		if i%8 == 0 { // lets the server report its progress
			params += `,"_meta":{"progressToken":` + strconv.Itoa(i) + `}`
		}
		resp, err := rig.Post(context.WithoutCancel(t.Context()), front.URL, era, session, rig.Request(era, strconv.Itoa(i+1), "tools/call", params))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(b), `"content":[]`) {
			return fmt.Errorf("%.300s, %v", b, err)
		}
		return nil
	}
	run := func(from, n int) {
		const clients = 16
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for i := from + c; i < from+n; i += clients {
					if err := call(i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		r.Mu.Lock()
		r.All = nil
		r.Mu.Unlock()
	}
	held := func() (goroutines, files int) {
		open, _ := filepath.Glob("/proc/self/fd/*") // none where there is no such folder
		return runtime.NumGoroutine(), len(open)
	}
	run(0, 200)
	goroutines, files := held()
	begun := conns.Load()
	run(200, calls)
	nowGoroutines, nowFiles := held()
	kept := 3 * int(conns.Load()-begun) // of connections to the server that are kept, at either end
	for range 200 {
		if nowGoroutines <= goroutines+kept+8 && nowFiles <= files+kept+8 {
			break
		}
		time.Sleep(10 * time.Millisecond) // connections are closing
		nowGoroutines, nowFiles = held()
	}
	t.Logf("%d calls: goroutines %d, then %d; descriptors %d, then %d; connections to the server %d, then %d; handshakes %d",
		calls, goroutines, nowGoroutines, files, nowFiles, begun, conns.Load(), hellos.Load())
	if nowGoroutines > goroutines+kept+8 || nowFiles > files+kept+8 {
		t.Error("what calls use is left")
	}
	if hellos.Load() != 1 {
		t.Errorf("%d handshakes with the server over HTTP", hellos.Load())
	}
	if conns.Load() > 64 {
		t.Errorf("%d connections to the server for 16 clients", conns.Load())
	}
}
