//go:build unix

package real

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// testJobs kills the gateway while a job runs: the next one says so, and has kept what
// came of another.
func testJobs(t *testing.T, p *e2e.Program) {
	up := e2e.NewSlow()
	up.Tools = `[{"name":"slow","inputSchema":{"type":"object"}},{"name":"quick","inputSchema":{"type":"object"}}]`
	waits := up.Answer
	up.Answer = func(w http.ResponseWriter, r *http.Request, c e2e.StubCall) {
		if c.Params.Name == "quick" {
			e2e.AnswerFine(w, r, c)
			return
		}
		waits(w, r, c)
	}
	pl := p.Place(t, "jobs: {offer: true}\nservers:\n  up: {url: "+up.Start(t)+"}\n")
	pl.Must("grant", "--yes", "up__*")
	gw := pl.Serve()
	w := e2e.MustWire(t, gw.URL)
	quick := job(w, t, "jobs__start", `{"tool":"up__quick"}`).Get("job_id").Text()
	if s := job(w, t, "jobs__wait", about(quick)); s.Get("lifecycle_status").Text() != "completed" {
		t.Fatalf("the job is %s", s)
	}
	slow := job(w, t, "jobs__start", `{"tool":"up__slow"}`).Get("job_id").Text()
	<-up.Began
	if s := pl.Must("status"); !strings.Contains(s, "jobs: 1 running, 1 kept") {
		t.Errorf("status:\n%s", s)
	}
	if err := gw.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gw.Wait()

	w = e2e.MustWire(t, pl.Serve().URL)
	s := job(w, t, "jobs__status", about(slow))
	if s.Get("lifecycle_status").Text() != "failed" || s.Get("reason").Text() != "the gateway was restarted while the call ran" {
		t.Errorf("the job that ran is %s", s)
	}
	if a := w.MustCall(t, "jobs__result", about(quick)); !strings.Contains(string(a.Result), `"text":"fine"`) {
		t.Errorf("the other's result is %s", a.Result)
	}
	if calls := up.Calls("slow"); len(calls) != 1 {
		t.Errorf("the call was made %d times", len(calls))
	}
	pl.Verify()
}

func about(id string) string { return fmt.Sprintf(`{"job_id":%q}`, id) }

// job calls a tool of the server jobs, and returns how the job is.
func job(w *e2e.Wire, t *testing.T, tool, args string) gate.Doc {
	t.Helper()
	return gate.MustDoc(string(w.MustCall(t, tool, args).Result)).Get("structuredContent")
}

// testTasks calls the tool of server-everything that must be a task: as a task, and as
// clients do that know of none.
func testTasks(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, fmt.Sprintf("servers:\n  ev: {command: node, args: [%s, stdio]}\n", filepath.Join(dir, everythingServer)))
	pl.Must("grant", "--yes", "ev__*")
	gw := pl.Serve()
	plain := make(chan string, 1)
	go func() {
		w, err := e2e.DialWire(t.Context(), gw.URL)
		if err != nil {
			plain <- err.Error()
			return
		}
		a, err := w.Call(t.Context(), "ev__simulate-research-query", `{"topic":"plain"}`)
		plain <- fmt.Sprint(string(a.Result), a.Error, err)
	}()
	w := e2e.MustWire(t, gw.URL)
	task := ask(w, t, "tools/call", `"name":"ev__simulate-research-query","arguments":{"topic":"gates"},"task":{"ttl":60000}`).Get("task")
	if task.Get("status").Text() != "working" {
		t.Fatalf("task %s", task)
	}
	id := task.Get("taskId").String()
	res := ask(w, t, "tasks/result", `"taskId":`+id)
	if !strings.Contains(res.At("/content/0/text").Text(), "Research Report: gates") {
		t.Errorf("result %s", res)
	}
	if of := res.Get("_meta").Get("io.modelcontextprotocol/related-task").Get("taskId").String(); of != id {
		t.Errorf("the result is of task %s, want %s", of, id)
	}
	if got := <-plain; !strings.Contains(got, "Research Report: plain") {
		t.Errorf("without a task: %s", got)
	}
	pl.Verify()
}

// ask sends a request and returns its result.
func ask(w *e2e.Wire, t *testing.T, method, params string) gate.Doc {
	t.Helper()
	w.Last++
	_, b, err := w.Post(t.Context(), "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, w.Last, method, params))
	if err != nil {
		t.Fatal(err)
	}
	var a e2e.Answered
	if err := json.Unmarshal(b, &a); err != nil || a.Error != nil {
		t.Fatalf("%s: %.300s, %v", method, b, err)
	}
	return gate.MustDoc(string(a.Result))
}
