//go:build unix

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// testBadArguments sends what a client should not send. The server sees none of
// it.
func testBadArguments(t *testing.T, p *e2e.Program) {
	up := &e2e.Stub{Answer: e2e.AnswerFine, Tools: `[{"name":"sum","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}]`}
	pl := p.Place(t, "servers:\n  up: {url: "+up.Start(t)+"}\n")
	pl.Must("grant", "--yes", "up__*")
	gw := pl.Serve()
	e2e.MustWire(t, gw.URL).MustCall(t, "up__sum", `{"a":1}`)
	tests := map[string]struct {
		args string
		code string // in the log
		rpc  int    // code of the JSON-RPC error; 0 for a result
		says string
	}{
		"a wrong type":        {`{"a":"one"}`, "refused_validate_input", 0, "/a"},
		"a missing argument":  {`{}`, "refused_validate_input", 0, "a"},
		"an unknown argument": {`{"a":1,"b":2}`, "refused_validate_input", 0, "b"},
		"a duplicate key":     {`{"a":1,"a":2}`, "refused_parse", -32602, "same name"},
		"deep nesting":        {nested(300), "refused_parse", -32602, "levels deep"},
		"1 MB of nesting":     {nested(1 << 19), "refused_parse", -32602, "levels deep"},
		"invalid UTF-8":       {"{\"a\":\"\xff\xfe\"}", "refused_parse", -32602, "UTF-8"},
		"no object":           {`[1]`, "refused_parse", -32602, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, w := range []*e2e.Wire{e2e.MustWire(t, gw.URL), {URL: gw.URL, Stateless: true}} {
				a := w.MustCall(t, "up__sum", tt.args)
				code, reason := a.Refusal()
				switch {
				case tt.rpc != 0 && (a.Error == nil || a.Error.Code != tt.rpc):
					t.Errorf("answer = %+v %.200s, want error %d", a.Error, a.Result, tt.rpc)
				case tt.rpc != 0:
					e2e.Holds(t, a.Error.Message, tt.says)
				case code != tt.code:
					t.Errorf("refusal = %q, want %q", code, tt.code)
				default:
					e2e.Holds(t, reason, tt.says)
				}
				if e := pl.LastDone("up__sum"); e.Code != tt.code {
					t.Errorf("recorded as %q, want %q", e.Code, tt.code)
				}
			}
		})
	}
	if seen := up.Calls("sum"); len(seen) != 1 {
		t.Errorf("the server saw %d calls, want the good one alone: %.300q", len(seen), seen)
	}
	if o := pl.Run("call", "up__sum", `{"a":"one"}`); o.Code != 3 {
		t.Errorf("call with a wrong type: exit %d, want 3", o.Code)
	}
}

// nested returns arguments of arrays in arrays.
func nested(levels int) string {
	return `{"a":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + "}"
}

// shServer is a stdio MCP server in sh, which carries its first argument as its
// mark. Its tool die ends it, and its grandchild has left its process group.
const shServer = `
setsid sh -c 'while :; do sleep 1; done' "$1" &
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
  *'"tools/list"'*) r='{"tools":[{"name":"die","inputSchema":{"type":"object"}},{"name":"hello","inputSchema":{"type":"object"}}]}' ;;
  *'"name":"die"'*) exit 3 ;;
  *'"tools/call"'*) r='{"content":[{"type":"text","text":"hello"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done`

// shell is the configuration of shServer under a mark.
func shell(pl *e2e.Place, mark string) string {
	pl.T.Helper()
	toolchain.Need(pl.T, "sh", "setsid") // which leaves a process group
	pl.Write("server.sh", shServer)
	return fmt.Sprintf("  sh: {command: sh, args: [%q, %s]}\n", pl.File("server.sh"), mark)
}

// flood answers any request with size bytes of one message.
func flood(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"x":"`))
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(`"}}`))
	}
}

// testSickServers runs servers that misbehave next to a good one, which works all the time.
func testSickServers(t *testing.T, p *e2e.Program) {
	serve := func(h http.HandlerFunc) string {
		ts := httptest.NewServer(h)
		t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
		return ts.URL
	}
	good := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	pl := p.Place(t, "")
	mark := "mark-" + pl.Dir[strings.LastIndex(pl.Dir, "/")+1:]
	servers := map[string]struct{ config, fault string }{
		"missing":  {"command: ./none", "spawn_failed"},
		"ends":     {"command: sh, args: [-c, exit 7]", "spawn_failed"},
		"floods":   {"command: sh, args: [-c, 'exec yes']", "protocol"},
		"babbles":  {`command: sh, args: [-c, 'read -r l; echo "{\"jsonrpc\":]"; read -r l']`, "protocol"},
		"nonsense": {"url: " + serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello") }), "protocol"},
		"huge":     {"url: " + serve(flood(100<<20)), "protocol"},
		"closed":   {"url: http://127.0.0.1:" + strconv.Itoa(freeport.Port(t)), "transport"},
		"hangs":    {"url: " + serve(e2e.Hang), "timeout"},
	}
	config := "version: 1\npolicy: {timeout: 5s}\nservers:\n  good: {url: " + good.Start(t) + "}\n" + shell(pl, mark)
	for id, s := range servers {
		config += "  " + id + ": {" + s.config + "}\n"
	}
	pl.Write("wasmgate.yaml", config)
	pl.Must("grant", "--yes", "good__*")
	pl.Must("grant", "--yes", "sh__*")
	pl.Env = append(pl.Env, steadyMemory)
	gw := pl.Listening()

	w := e2e.MustWire(t, gw.URL)
	for range 2 { // also while others are still connecting
		if a := w.MustCall(t, "good__echo", "{}"); !strings.Contains(string(a.Result), "fine") {
			t.Errorf("the good server: %s", a.Result)
		}
	}
	if a := w.MustCall(t, "sh__die", "{}"); e2e.Code(a) != "transport" {
		t.Errorf("a server that ends in a call: %s", a.Result)
	}
	timelimit.Wait(t, "the server that ended works again", func() bool {
		return strings.Contains(string(w.MustCall(t, "sh__hello", "{}").Result), "hello")
	})
	var found map[string]string
	timelimit.Wait(t, "every sick server is faulted", func() bool {
		found = faults(t, pl)
		return len(found) == len(servers)
	})
	for id, s := range servers {
		if found[id] != s.fault {
			t.Errorf("server %s is faulted with %q, want %q", id, found[id], s.fault)
		}
	}
	if hwm := peakMemory(t, gw.PID()); hwm > 400<<20 {
		t.Errorf("the gateway took %d MB", hwm>>20)
	}
	gw.Signal(os.Interrupt)
	gw.Wait()
	e2e.WaitGone(t, mark)
}

// faults returns the kinds of the faults of faulted servers, as status tells
// them.
func faults(t *testing.T, pl *e2e.Place) map[string]string {
	t.Helper()
	var s struct {
		Servers []struct{ Server, Fault string }
	}
	if err := json.Unmarshal([]byte(pl.Must("status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, one := range s.Servers {
		if one.Fault != "" {
			found[one.Server] = one.Fault
		}
	}
	return found
}

// steadyMemory is a variable of the environment with which garbage is collected as calls allocate. By
// default wasmgate collects it up to a limit that a busy machine exceeds.
const steadyMemory = "GOGC=100"

// peakMemory returns the most memory that a process has had, in bytes; 0 where
// that cannot be seen.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := e2e.Peak.FindSubmatch(b)
	if m == nil {
		return 0
	}
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if unraced.Raced() { // which takes several times as much
		kb /= 4
	}
	return kb << 10
}

// testClientGone shows that a call ends at the server when its client has gone.
func testClientGone(t *testing.T, p *e2e.Program) {
	began, ended := make(chan bool, 1), make(chan bool, 1)
	up := &e2e.Stub{Tools: `[{"name":"slow","inputSchema":{"type":"object"}}]`, Answer: func(_ http.ResponseWriter, r *http.Request, _ e2e.StubCall) {
		began <- true
		<-r.Context().Done()
		ended <- true
	}}
	pl := p.Place(t, "servers:\n  up: {url: "+up.Start(t)+"}\n")
	pl.Must("grant", "--yes", "up__*")
	gw := pl.Serve()
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-began
		leave()
	}()
	w := &e2e.Wire{URL: gw.URL, Stateless: true}
	if _, err := w.Call(ctx, "up__slow", "{}"); err == nil {
		t.Error("a call that its client gave up was answered")
	}
	select {
	case <-ended:
	case <-time.After(timelimit.Patience(t)):
		t.Error("the server's call was not cancelled")
	}
	timelimit.Wait(t, "the call is recorded as cancelled", func() bool {
		for _, e := range pl.Log() {
			if e.Event == "done" && e.Tool == "up__slow" {
				return e.Code == "cancelled"
			}
		}
		return false
	})
}
