//go:build unix

package e2e

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testServers changes the servers of a running gateway in its configuration: clients
// stay, calls under way end where they were made, and what is wrong changes nothing.
func testServers(t *testing.T, p *program) {
	begun, let := make(chan bool), make(chan bool)
	var calls atomic.Int32
	first := &stub{tools: `[{"name":"slow","inputSchema":{"type":"object"}}]`, answer: func(w http.ResponseWriter, _ *http.Request, c stubCall) {
		if calls.Add(1) > 1 {
			answerFine(w, nil, c)
			return
		}
		begun <- true
		<-let
		result(w, c.ID, `{"content":[{"type":"text","text":"the slow one"}]}`)
	}}
	other := &stub{tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, answer: answerFine}
	url, otherURL := first.start(t), other.start(t)
	before := "servers:\n  up: {url: " + url + "}\n"
	pl := p.place(t, before)
	gw := pl.serve()
	pl.must("grant", "--yes", "up__*")
	pl.must("grant", "--yes", "other__*")
	timelimit.Wait(t, "the server is ready", func() bool { return strings.Contains(pl.must("tools"), "up__slow") })
	watchers := []*watcher{watch(t, gw.url, "2025-11-25"), watch(t, gw.url, "2026-07-28")}
	configure := func(servers string) {
		pl.write("wasmgate.yaml", "version: 1\npolicy: {paths: [policies], timeout: 5s}\n"+servers)
	}

	answer := make(chan string)
	w, w2 := mustWire(t, gw.url), mustWire(t, gw.url)
	go func() { answer <- string(w.mustCall(t, "up__slow", "{}").Result) }()
	<-begun
	for _, w := range watchers {
		w.forget()
	}
	configure("servers:\n  up: {url: " + url + ", timeout: 29s}\n  other: {url: " + otherURL + "}\nlimits: {session: 5, body: 1MiB}\nlog: {level: warn}\njobs: {max: 7}\nconsole: {listen: 127.0.0.1:1}\n")
	timelimit.Wait(t, "the other server is there", func() bool { return strings.Contains(pl.must("tools"), "other__echo") })
	for _, w := range watchers {
		w.told(t)
	}
	if a := w2.mustCall(t, "up__slow", "{}"); !strings.Contains(string(a.Result), "fine") {
		t.Errorf("the next call: %s %+v", a.Result, a.Error)
	}
	close(let)
	if got := <-answer; !strings.Contains(got, "the slow one") {
		t.Errorf("the call under way: %s", got)
	}
	s := pl.must("status")
	if !strings.Contains(s, "configuration "+pl.file("wasmgate.yaml")+", read ") ||
		!strings.Contains(s, "console changed: restart to apply it") || strings.Contains(s, "jobs changed") || strings.Contains(s, "limits.") || strings.Contains(s, "log changed") {
		t.Errorf("status: %s", s)
	}

	configure("servers:\n  up: {}\n  other: {url: nowhere}\n")
	timelimit.Wait(t, "status tells what is wrong", func() bool {
		s := pl.run("status").stdout
		return strings.Contains(s, "wasmgate.yaml:4: servers.up: ") && strings.Contains(s, "wasmgate.yaml:5: servers.other.url: ") && strings.Contains(s, "last good one")
	})
	if a := w2.mustCall(t, "other__echo", "{}"); !strings.Contains(string(a.Result), "fine") {
		t.Errorf("under the last good configuration: %s %+v", a.Result, a.Error)
	}

	configure("servers:\n  other: {url: " + otherURL + "}\n")
	if err := syscall.Kill(gw.pid(), syscall.SIGHUP); err != nil {
		t.Fatal(os.NewSyscallError("kill", err))
	}
	timelimit.Wait(t, "the server is gone", func() bool { return !strings.Contains(pl.must("tools"), "up__slow") })
	if s := pl.must("status"); strings.Contains(s, "problem: configuration") {
		t.Errorf("status still has a problem: %s", s)
	}
	var changes []string
	for _, e := range pl.log() {
		if _, what, is := strings.Cut(strings.Join(e.Reasons, ""), "configuration: "); is && e.Event == "server" {
			changes = append(changes, strings.TrimSpace(e.Server+" "+what))
		}
	}
	want := []string{"how calls are checked changed", "how calls are checked changed", "order of servers changed", "order of servers changed", "other set", "refused", "up removed", "up set"}
	slices.Sort(changes)
	if !slices.Equal(changes, want) {
		t.Errorf("recorded: %q", changes)
	}
	pl.verify()
}
