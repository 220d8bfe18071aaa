//go:build unix

package gateway

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testServers changes the servers of a running gateway in its configuration: clients
// stay, calls under way end where they were made, and what is wrong changes nothing.
func testServers(t *testing.T, p *e2e.Program) {
	begun, let := make(chan bool), make(chan bool)
	var calls atomic.Int32
	first := &e2e.Stub{Tools: `[{"name":"slow","inputSchema":{"type":"object"}}]`, Answer: func(w http.ResponseWriter, _ *http.Request, c e2e.StubCall) {
		if calls.Add(1) > 1 {
			e2e.AnswerFine(w, nil, c)
			return
		}
		begun <- true
		<-let
		e2e.Result(w, c.ID, `{"content":[{"type":"text","text":"the slow one"}]}`)
	}}
	other := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	url, otherURL := first.Start(t), other.Start(t)
	before := "servers:\n  up: {url: " + url + "}\n"
	pl := p.Place(t, before)
	gw := pl.Serve()
	pl.Must("grant", "--yes", "up__*")
	pl.Must("grant", "--yes", "--force", "other__*")
	timelimit.Wait(t, "the server is ready", func() bool { return strings.Contains(pl.Must("tools"), "up__slow") })
	watchers := []*watcher{watch(t, gw.URL, "2025-11-25"), watch(t, gw.URL, "2026-07-28")}
	configure := func(servers string) {
		pl.Write("wasmgate.yaml", "version: 1\npolicy: {paths: [policies], timeout: 5s}\n"+servers)
	}

	answer := make(chan string)
	w, w2 := e2e.MustWire(t, gw.URL), e2e.MustWire(t, gw.URL)
	go func() { answer <- string(w.MustCall(t, "up__slow", "{}").Result) }()
	<-begun
	for _, w := range watchers {
		w.forget()
	}
	configure("servers:\n  up: {url: " + url + ", timeout: 29s}\n  other: {url: " + otherURL + "}\nlimits: {session: 5, body: 1MiB}\nlog: {level: warn}\njobs: {max: 7}\nconsole: {listen: 127.0.0.1:1}\n")
	timelimit.Wait(t, "the other server is there", func() bool { return strings.Contains(pl.Must("tools"), "other__echo") })
	for _, w := range watchers {
		w.told(t)
	}
	if a := w2.MustCall(t, "up__slow", "{}"); !strings.Contains(string(a.Result), "fine") {
		t.Errorf("the next call: %s %+v", a.Result, a.Error)
	}
	close(let)
	if got := <-answer; !strings.Contains(got, "the slow one") {
		t.Errorf("the call under way: %s", got)
	}
	s := pl.Must("status")
	if !strings.Contains(s, "configuration "+pl.File("wasmgate.yaml")+", read ") ||
		!strings.Contains(s, "console changed: restart to apply it") || strings.Contains(s, "jobs changed") || strings.Contains(s, "limits.") || strings.Contains(s, "log changed") {
		t.Errorf("status: %s", s)
	}

	configure("servers:\n  up: {}\n  other: {url: nowhere}\n")
	timelimit.Wait(t, "status tells what is wrong", func() bool {
		s := pl.Run("status").Stdout
		return strings.Contains(s, "wasmgate.yaml:4: servers.up: ") && strings.Contains(s, "wasmgate.yaml:5: servers.other.url: ") && strings.Contains(s, "last good one")
	})
	if a := w2.MustCall(t, "other__echo", "{}"); !strings.Contains(string(a.Result), "fine") {
		t.Errorf("under the last good configuration: %s %+v", a.Result, a.Error)
	}

	configure("servers:\n  other: {url: " + otherURL + "}\n")
	if err := syscall.Kill(gw.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(os.NewSyscallError("kill", err))
	}
	timelimit.Wait(t, "the server is gone", func() bool { return !strings.Contains(pl.Must("tools"), "up__slow") })
	if s := pl.Must("status"); strings.Contains(s, "problem: configuration") {
		t.Errorf("status still has a problem: %s", s)
	}
	var changes []string
	for _, e := range pl.Log() {
		if _, what, is := strings.Cut(strings.Join(e.Reasons, ""), "configuration: "); is && e.Event == "server" {
			changes = append(changes, strings.TrimSpace(e.Server+" "+what))
		}
	}
	want := []string{"how calls are checked changed", "how calls are checked changed", "order of servers changed", "order of servers changed", "other set", "refused", "up removed", "up set"}
	slices.Sort(changes)
	if !slices.Equal(changes, want) {
		t.Errorf("recorded: %q", changes)
	}
	pl.Verify()
}
