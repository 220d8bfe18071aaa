package bridge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/jobs"
	"github.com/wasmgate/wasmgate/gate/store"
)

// learning are sessions that know what they were taught.
type learning struct {
	sessions
	mu     sync.Mutex
	taught map[string]gate.Labels // by session
}

func (s *learning) Learn(_ context.Context, k gate.SessionKey, l gate.Lesson) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taught[k.ID] = s.taught[k.ID].Join(l.Labels)
	return nil
}

// newTaskFixture is a fixture whose host keeps tasks.
func newTaskFixture(t *testing.T) (*fixture, *learning) {
	t.Helper()
	return newTaskFixtureWith(t, bridge.HostConfig{})
}

// newTaskFixtureWith has more tools, and other settings.
func newTaskFixtureWith(t *testing.T, cfg bridge.HostConfig, more ...bridge.LocalTool) (*fixture, *learning) {
	t.Helper()
	x := &fixture{results: map[string]string{"echo": `{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"forged"}}}`}, begun: make(chan struct{}, 100)}
	var tools []bridge.LocalTool
	for _, name := range []string{"echo", "denied", "hidden", "fails", "block"} {
		tools = append(tools, bridge.LocalTool{Definition: gate.MustDoc(tool(name)), Call: x.call})
	}
	tools = append(tools,
		bridge.LocalTool{Definition: gate.MustDoc(`{"name":"own","inputSchema":{"type":"object"},"execution":{"taskSupport":"required","x":1}}`), Call: x.call},
		bridge.LocalTool{Definition: gate.MustDoc(tool("relays")), Call: x.call, Relay: true})
	var err error
	if x.local, err = bridge.NewLocal("local", options(), append(tools, more...)...); err != nil {
		t.Fatal(err)
	}
	x.fleet = newFleet(t, bridge.FleetConfig{Locals: []*bridge.Local{x.local}})
	read := &learning{taught: make(map[string]gate.Labels)}
	x.records = new(records)
	g, err := gate.New(gate.Parts{
		Upstream: x.fleet, Sessions: read, Sanitizer: sanitizerFunc(unchanged), Recorder: x.records,
		Authorizer: authorizerFunc(func(q gate.Query) gate.Decision {
			switch q.Tool.Local {
			case "hidden":
				return gate.Decision{Effect: gate.Deny, Hidden: true}
			case "denied":
				return gate.Decision{Effect: gate.Deny, Reasons: []string{"not yours"}}
			}
			return gate.Decision{Effect: gate.Allow}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Memory)
	if err != nil {
		t.Fatal(err)
	}
	runner := cfg.Jobs
	if runner == nil {
		if runner, err = jobs.New(t.Context(), jobs.Options{Store: db, Public: bridge.Public}); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Version, cfg.Do, cfg.Tools, cfg.Lookup, cfg.Jobs, cfg.Recall = "1", g.Do, g.Tools, x.fleet.Lookup, runner, g.Recall
	if x.host, err = bridge.NewHost(cfg); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", x.host)
	mux.Handle("/group/{"+bridge.GroupParam+"}", x.host)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		runner.Close()
		srv.CloseClientConnections()
		srv.Close()
		db.Close()
	})
	x.url = srv.URL
	return x, read
}

// inSessions runs a test over the wires that have sessions: tasks are of revision
// 2025-11-25.
func inSessions(t *testing.T, test func(t *testing.T, x *fixture, read *learning, ask func(method, params string) gate.Doc)) {
	for name, w := range wires {
		if w.era != old {
			continue
		}
		t.Run(name, func(t *testing.T) {
			x, read := newTaskFixture(t)
			wire := w.dial(t, x)
			n := 0
			test(t, x, read, func(method, params string) gate.Doc {
				t.Helper()
				n++
				return gate.MustDoc(wire(request(old, fmt.Sprint(n), method, params)))
			})
		})
	}
}

func TestTask(t *testing.T) {
	inSessions(t, func(t *testing.T, x *fixture, read *learning, ask func(string, string) gate.Doc) {
		task := ask("tools/call", `"name":"local__echo","arguments":{},"task":{"ttl":60000}`).At("/result/task")
		id := task.Get("taskId")
		if id.Text() == "" || task.Get("status").Text() != "working" || task.Get("ttl").String() != "60000" || task.Get("pollInterval").IsZero() {
			t.Fatalf("it starts as %s", task)
		}
		for _, at := range []string{"createdAt", "lastUpdatedAt"} {
			if _, err := time.Parse(time.RFC3339, task.Get(at).Text()); err != nil {
				t.Error(err)
			}
		}
		res := ask("tasks/result", `"taskId":`+id.String()).Get("result")
		if res.At("/content/0/text").Text() != "done" {
			t.Errorf("result %s", res)
		}
		if of := res.Get("_meta").Get("io.modelcontextprotocol/related-task").Get("taskId").Text(); of != id.Text() {
			t.Errorf("the result is of task %q, want %q", of, id.Text())
		}
		if got := ask("tasks/get", `"taskId":`+id.String()).At("/result/status").Text(); got != "completed" {
			t.Errorf("in the end it is %q", got)
		}
		if diff := cmp.Diff([]string{"local__echo ok"}, x.records.done()); diff != "" {
			t.Error(diff)
		}
		if len(read.taught) != 1 {
			t.Errorf("taught %v", read.taught)
		}
	})
}

func TestTaskThatFails(t *testing.T) {
	inSessions(t, func(t *testing.T, _ *fixture, _ *learning, ask func(string, string) gate.Doc) {
		id := ask("tools/call", `"name":"local__fails","arguments":{},"task":{}`).At("/result/task/taskId").String()
		res := ask("tasks/result", `"taskId":`+id).Get("result")
		refusal := res.Get("_meta").Get(gate.MetaRefusal)
		if !res.Get("isError").True() || refusal.Get("code").Text() != "transport" || refusal.Get("record_id").Text() == "" {
			t.Errorf("result %s", res)
		}
		got := ask("tasks/get", `"taskId":`+id).Get("result")
		if got.Get("status").Text() != "failed" || got.Get("statusMessage").Text() == "" || strings.Contains(got.String(), "EOF") {
			t.Errorf("task %s", got)
		}
	})
}

func TestTaskIsCancelled(t *testing.T) {
	inSessions(t, func(t *testing.T, x *fixture, _ *learning, ask func(string, string) gate.Doc) {
		id := ask("tools/call", `"name":"local__block","arguments":{},"task":{}`).At("/result/task/taskId").String()
		<-x.begun
		if got := ask("tasks/cancel", `"taskId":`+id).At("/result/status").Text(); got != "cancelled" {
			t.Errorf("status %q", got)
		}
		if code := ask("tasks/cancel", `"taskId":`+id).At("/error/code").String(); code != "-32602" {
			t.Errorf("a second time: %s", code)
		}
		if res := ask("tasks/result", `"taskId":`+id).Get("result"); !res.Get("isError").True() {
			t.Errorf("result %s", res)
		}
		if diff := cmp.Diff([]string{"local__block cancelled"}, x.records.done()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTasksAreListed(t *testing.T) {
	inSessions(t, func(t *testing.T, _ *fixture, _ *learning, ask func(string, string) gate.Doc) {
		const n = 103
		var want, got []string
		for range n {
			want = append(want, ask("tools/call", `"name":"local__echo","arguments":{},"task":{}`).At("/result/task/taskId").Text())
		}
		slices.Reverse(want)
		for cursor := ""; ; {
			page := ask("tasks/list", cursor).Get("result")
			for task := range page.Get("tasks").Elements() {
				got = append(got, task.Get("taskId").Text())
			}
			if page.Get("nextCursor").IsZero() {
				break
			}
			cursor = `"cursor":` + page.Get("nextCursor").String()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// What is no task, and what would be none if its call were made.
func TestTaskRequestsThatAreRefused(t *testing.T) {
	inSessions(t, func(t *testing.T, x *fixture, _ *learning, ask func(string, string) gate.Doc) {
		for name, tt := range map[string]struct{ method, params, code string }{
			"a task that never was":      {"tasks/get", `"taskId":"none"`, "-32602"},
			"the result of none":         {"tasks/result", `"taskId":"none"`, "-32602"},
			"to cancel none":             {"tasks/cancel", `"taskId":"none"`, "-32602"},
			"no id":                      {"tasks/get", ``, "-32602"},
			"an id that is a number":     {"tasks/get", `"taskId":1`, "-32602"},
			"a cursor of nobody":         {"tasks/list", `"cursor":"none"`, "-32602"},
			"a cursor that is no string": {"tasks/list", `"cursor":1`, "-32602"},
			"a method that is none":      {"tasks/none", ``, "-32601"},
			"a task that is no object":   {"tools/call", `"name":"local__echo","arguments":{},"task":1`, "-32602"},
			"a ttl that is no number":    {"tools/call", `"name":"local__echo","arguments":{},"task":{"ttl":"1"}`, "-32602"},
			"a ttl in the past":          {"tools/call", `"name":"local__echo","arguments":{},"task":{"ttl":-1}`, "-32602"},
			"a tool that nobody has":     {"tools/call", `"name":"local__none","arguments":{},"task":{}`, "-32602"},
			"a tool that is hidden":      {"tools/call", `"name":"local__hidden","arguments":{},"task":{}`, "-32602"},
			"a tool that makes calls":    {"tools/call", `"name":"local__relays","arguments":{},"task":{}`, "-32601"},
		} {
			if got := ask(tt.method, tt.params); got.At("/error/code").String() != tt.code {
				t.Errorf("%s: %s, want %s", name, got, tt.code)
			}
		}
		res := ask("tools/call", `"name":"local__denied","arguments":{},"task":{}`)
		if res.At("/error/data").Get(gate.MetaRefusal).Get("code").Text() != "refused_authorize" || res.At("/error/code").String() != "-32010" {
			t.Errorf("a call that is refused: %s", res)
		}
		if got := ask("tasks/list", ``).At("/result/tasks").String(); got != "[]" {
			t.Errorf("these have left the tasks %s", got)
		}
		if x.calls() != 0 {
			t.Errorf("%d calls were made", x.calls())
		}
	})
}

// Clients must not call a tool as a task that does not say it can be (MCP 2025-11-25,
// basic/utilities/tasks, "Tool-Level Negotiation").
func TestTasksAreOffered(t *testing.T) {
	for name, w := range wires {
		t.Run(name, func(t *testing.T) {
			x, _ := newTaskFixture(t)
			all := gate.MustDoc(w.dial(t, x)(request(w.era, "1", "tools/list", "")))
			got := map[string]string{}
			for tool := range all.At("/result/tools").Elements() {
				got[tool.Get("name").Text()] = tool.Get("execution").String()
			}
			optional := ""
			if w.era == old {
				optional = `{"taskSupport":"optional"}`
			}
			want := map[string]string{
				"local__echo": optional, "local__fails": optional, "local__block": optional, "local__denied": optional,
				"local__own": `{"taskSupport":"required","x":1}`, "local__relays": "",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTasksAreDeclared(t *testing.T) {
	x, _ := newTaskFixture(t)
	resp, err := post(t.Context(), x.url, old, "", hello)
	if err != nil {
		t.Fatal(err)
	}
	res := gate.MustDoc(answerOf(t, resp)).Get("result")
	if got := res.At("/capabilities/tasks").String(); got != `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}` {
		t.Errorf("capabilities of tasks: %s", got)
	}
	if res.Get("protocolVersion").Text() != old || res.At("/capabilities/tools").IsZero() || resp.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("the rest of the answer: %s", res)
	}
	without := newFixture(t)
	resp, err = post(t.Context(), without.url, old, "", hello)
	if err != nil {
		t.Fatal(err)
	}
	if got := gate.MustDoc(answerOf(t, resp)).At("/result/capabilities/tasks"); !got.IsZero() {
		t.Errorf("a host without jobs declares tasks: %s", got)
	}
	for name, w := range wires {
		wire := w.dial(t, without)
		if got := gate.MustDoc(wire(request(w.era, "2", "tasks/list", ""))).At("/error/code").String(); got != "-32601" {
			t.Errorf("%s, a host without jobs: %s", name, got)
		}
		if got := gate.MustDoc(wire(request(w.era, "3", "tools/call", `"name":"local__echo","arguments":{},"task":{}`))); got.At("/result/content").IsZero() {
			t.Errorf("%s, a host without jobs: %s, want a call without a task", name, got)
		}
	}
}

// The session that reads a result learns what it teaches, whichever session asked for
// the call.
func TestTaskResultTeaches(t *testing.T) {
	x, read := newTaskFixture(t)
	first, second := openSession(t, x.url), openSession(t, x.url)
	ask := func(session, method, params string) gate.Doc {
		resp, err := post(t.Context(), x.url, old, session, request(old, "1", method, params))
		if err != nil {
			t.Fatal(err)
		}
		return gate.MustDoc(answerOf(t, resp)).Get("result")
	}
	id := ask(first, "tools/call", `"name":"local__echo","arguments":{},"task":{}`).At("/task/taskId").String()
	ask(first, "tasks/result", `"taskId":`+id)
	before := len(read.taught)
	ask(second, "tasks/get", `"taskId":`+id)
	if len(read.taught) != before {
		t.Error("a status teaches")
	}
	ask(second, "tasks/result", `"taskId":`+id)
	untrusted := 0
	for _, labels := range read.taught {
		if slices.Contains(labels, gate.Untrusted) {
			untrusted++
		}
	}
	if untrusted != 2 {
		t.Errorf("taught %v, want both sessions", read.taught)
	}
}

// To all but the principal who started it a task does not exist.
func TestTaskIsItsPrincipalsAlone(t *testing.T) {
	x, _ := newTaskFixture(t)
	id := gate.MustDoc(dialHTTP(t, x, old)(request(old, "1", "tools/call", `"name":"local__block","arguments":{},"task":{}`))).At("/result/task/taskId").String()
	<-x.begun
	bob := gate.Local()
	bob.ID = "bob"
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.host.Serve(context.WithoutCancel(t.Context()), bob, inR, outW)
		outW.Close()
	}()
	lines := bufio.NewReader(outR)
	ask := func(msg string) gate.Doc {
		t.Helper()
		if _, err := io.WriteString(inW, msg+"\n"); err != nil {
			t.Fatal(err)
		}
		l, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return gate.MustDoc(l)
	}
	ask(hello)
	if _, err := io.WriteString(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for i, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		got := ask(request(old, fmt.Sprint(i+2), method, `"taskId":`+id))
		if got.At("/error/message").Text() != "there is no such task" {
			t.Errorf("%s: %s", method, got)
		}
	}
	if got := ask(request(old, "9", "tasks/list", "")).At("/result/tasks").String(); got != "[]" {
		t.Errorf("tasks/list: %s", got)
	}
	inW.Close()
	<-served
	if len(x.records.done()) != 0 {
		t.Errorf("somebody else has ended the call: %q", x.records.done())
	}
}
