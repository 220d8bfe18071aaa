//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// testJobs kills the gateway while a job runs: the next one says so, and has kept what
// came of another.
func testJobs(t *testing.T, p *program) {
	up := newSlow()
	up.tools = `[{"name":"slow","inputSchema":{"type":"object"}},{"name":"quick","inputSchema":{"type":"object"}}]`
	waits := up.answer
	up.answer = func(w http.ResponseWriter, r *http.Request, c stubCall) {
		if c.Params.Name == "quick" {
			answerFine(w, r, c)
			return
		}
		waits(w, r, c)
	}
	pl := p.place(t, "jobs: {offer: true}\nservers:\n  up: {url: "+up.start(t)+"}\n")
	pl.must("grant", "--yes", "up__*")
	gw := pl.serve()
	w := mustWire(t, gw.url)
	quick := w.job(t, "jobs__start", `{"tool":"up__quick"}`).Get("job_id").Text()
	if s := w.job(t, "jobs__wait", about(quick)); s.Get("lifecycle_status").Text() != "completed" {
		t.Fatalf("the job is %s", s)
	}
	slow := w.job(t, "jobs__start", `{"tool":"up__slow"}`).Get("job_id").Text()
	<-up.began
	if s := pl.must("status"); !strings.Contains(s, "jobs: 1 running, 1 kept") {
		t.Errorf("status:\n%s", s)
	}
	if err := gw.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gw.wait()

	w = mustWire(t, pl.serve().url)
	s := w.job(t, "jobs__status", about(slow))
	if s.Get("lifecycle_status").Text() != "failed" || s.Get("reason").Text() != "the gateway was restarted while the call ran" {
		t.Errorf("the job that ran is %s", s)
	}
	if a := w.mustCall(t, "jobs__result", about(quick)); !strings.Contains(string(a.Result), `"text":"fine"`) {
		t.Errorf("the other's result is %s", a.Result)
	}
	if calls := up.calls("slow"); len(calls) != 1 {
		t.Errorf("the call was made %d times", len(calls))
	}
	pl.verify()
}

func about(id string) string { return fmt.Sprintf(`{"job_id":%q}`, id) }

// job calls a tool of the server jobs, and returns how the job is.
func (w *wire) job(t *testing.T, tool, args string) gate.Doc {
	t.Helper()
	return gate.MustDoc(string(w.mustCall(t, tool, args).Result)).Get("structuredContent")
}

// testTasks calls the tool of server-everything that must be a task: as a task, and as
// clients do that know of none.
func testTasks(t *testing.T, p *program) {
	dir := node(t)
	pl := p.place(t, fmt.Sprintf("servers:\n  ev: {command: node, args: [%s, stdio]}\n", filepath.Join(dir, everythingServer)))
	pl.must("grant", "--yes", "ev__*")
	gw := pl.serve()
	plain := make(chan string, 1)
	go func() {
		w, err := dialWire(t.Context(), gw.url)
		if err != nil {
			plain <- err.Error()
			return
		}
		a, err := w.call(t.Context(), "ev__simulate-research-query", `{"topic":"plain"}`)
		plain <- fmt.Sprint(string(a.Result), a.Error, err)
	}()
	w := mustWire(t, gw.url)
	task := w.ask(t, "tools/call", `"name":"ev__simulate-research-query","arguments":{"topic":"gates"},"task":{"ttl":60000}`).Get("task")
	if task.Get("status").Text() != "working" {
		t.Fatalf("task %s", task)
	}
	id := task.Get("taskId").String()
	res := w.ask(t, "tasks/result", `"taskId":`+id)
	if !strings.Contains(res.At("/content/0/text").Text(), "Research Report: gates") {
		t.Errorf("result %s", res)
	}
	if of := res.Get("_meta").Get("io.modelcontextprotocol/related-task").Get("taskId").String(); of != id {
		t.Errorf("the result is of task %s, want %s", of, id)
	}
	if got := <-plain; !strings.Contains(got, "Research Report: plain") {
		t.Errorf("without a task: %s", got)
	}
	pl.verify()
}

// ask sends a request and returns its result.
func (w *wire) ask(t *testing.T, method, params string) gate.Doc {
	t.Helper()
	w.last++
	_, b, err := w.post(t.Context(), "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, w.last, method, params))
	if err != nil {
		t.Fatal(err)
	}
	var a answered
	if err := json.Unmarshal(b, &a); err != nil || a.Error != nil {
		t.Fatalf("%s: %.300s, %v", method, b, err)
	}
	return gate.MustDoc(string(a.Result))
}
