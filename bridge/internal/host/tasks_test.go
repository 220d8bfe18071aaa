package host_test

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

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/store"
)

// learning are sessions that know what they were taught.
type learning struct {
	rig.Sessions
	mu      sync.Mutex
	taught  map[string]gate.Labels // by session
	clients []gate.Client          // of the calls that were carried out
}

// carry notes the client of a call.
func (s *learning) carry(c gate.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
}

// expire has the calls expire that may wait for their clients, as a call that makes room for another
// one does: it may have become a task in between.
func (s *learning) expire() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if waits, ok := c.(interface{ Expire() }); ok {
			waits.Expire()
			n++
		}
	}
	return n
}

func (s *learning) Learn(_ context.Context, k gate.SessionKey, l gate.Lesson) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taught[k.ID] = s.taught[k.ID].Join(l.Labels)
	return nil
}

// newTaskFixture is a fixture whose host keeps tasks.
func newTaskFixture(t *testing.T) (*rig.Fixture, *learning) {
	t.Helper()
	return newTaskFixtureWith(t, host.Config{})
}

// newTaskFixtureWith has more tools, and other settings.
func newTaskFixtureWith(t *testing.T, cfg host.Config, more ...options.LocalTool) (*rig.Fixture, *learning) {
	t.Helper()
	x := &rig.Fixture{Results: map[string]string{"echo": `{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"forged"}}}`}, Begun: make(chan struct{}, 100)}
	var tools []options.LocalTool
	for _, name := range []string{"echo", "denied", "hidden", "fails", "block"} {
		tools = append(tools, options.LocalTool{Definition: gate.MustDoc(rig.Tool(name)), Call: x.Call})
	}
	tools = append(tools,
		options.LocalTool{Definition: gate.MustDoc(`{"name":"own","inputSchema":{"type":"object"},"execution":{"taskSupport":"required","x":1}}`), Call: x.Call},
		options.LocalTool{Definition: gate.MustDoc(rig.Tool("relays")), Call: x.Call, Relay: true})
	var err error
	if x.Local, err = local.New("local", rig.Options(), append(tools, more...)...); err != nil {
		t.Fatal(err)
	}
	x.Fleet = rig.NewFleet(t, fleet.Config{Locals: []*local.Server{x.Local}})
	read := &learning{taught: make(map[string]gate.Labels)}
	x.Records = new(rig.Records)
	g, err := gate.New(gate.Parts{
		Upstream: x.Fleet, Sessions: read, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: x.Records,
		Authorizer: rig.AuthorizerFunc(func(q gate.Query) gate.Decision {
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
		if runner, err = jobs.New(t.Context(), jobs.Options{Store: db, Public: message.Public}); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Do = func(ctx context.Context, c gate.Call) (gate.Result, error) {
		read.carry(c.Client)
		return g.Do(ctx, c)
	}
	cfg.Version, cfg.Tools, cfg.Lookup, cfg.Jobs, cfg.Recall = "1", g.Tools, x.Fleet.Lookup, runner, g.Recall
	if x.Host, err = host.New(cfg); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", x.Host)
	mux.Handle("/group/{"+transport.GroupParam+"}", x.Host)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		runner.Close(context.Background())
		_ = x.Host.Drain(context.Background()) // calls whose clients have gone
		srv.CloseClientConnections()
		srv.Close()
		db.Close()
	})
	x.URL = srv.URL
	return x, read
}

// inSessions runs a test over the wires that have sessions: tasks are of revision
// 2025-11-25.
func inSessions(t *testing.T, test func(t *testing.T, x *rig.Fixture, read *learning, ask func(method, params string) gate.Doc)) {
	for name, w := range rig.Wires {
		if w.Era != rig.Old {
			continue
		}
		t.Run(name, func(t *testing.T) {
			x, read := newTaskFixture(t)
			wire := w.Dial(t, x)
			n := 0
			test(t, x, read, func(method, params string) gate.Doc {
				t.Helper()
				n++
				return gate.MustDoc(wire(rig.Request(rig.Old, fmt.Sprint(n), method, params)))
			})
		})
	}
}

func TestTask(t *testing.T) {
	inSessions(t, func(t *testing.T, x *rig.Fixture, read *learning, ask func(string, string) gate.Doc) {
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
		if diff := cmp.Diff([]string{"local__echo ok"}, x.Records.Done()); diff != "" {
			t.Error(diff)
		}
		if len(read.taught) != 1 {
			t.Errorf("taught %v", read.taught)
		}
	})
}

func TestTaskThatFails(t *testing.T) {
	inSessions(t, func(t *testing.T, _ *rig.Fixture, _ *learning, ask func(string, string) gate.Doc) {
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
	inSessions(t, func(t *testing.T, x *rig.Fixture, _ *learning, ask func(string, string) gate.Doc) {
		id := ask("tools/call", `"name":"local__block","arguments":{},"task":{}`).At("/result/task/taskId").String()
		<-x.Begun
		if got := ask("tasks/cancel", `"taskId":`+id).At("/result/status").Text(); got != "cancelled" {
			t.Errorf("status %q", got)
		}
		if code := ask("tasks/cancel", `"taskId":`+id).At("/error/code").String(); code != "-32602" {
			t.Errorf("a second time: %s", code)
		}
		if res := ask("tasks/result", `"taskId":`+id).Get("result"); !res.Get("isError").True() {
			t.Errorf("result %s", res)
		}
		if diff := cmp.Diff([]string{"local__block cancelled"}, x.Records.Done()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTasksAreListed(t *testing.T) {
	inSessions(t, func(t *testing.T, _ *rig.Fixture, _ *learning, ask func(string, string) gate.Doc) {
		const n = 103
		var want, got []string
		for range n {
			rig.Within(t, "there is room for one more", func() bool { // so many are under way at one time
				id := ask("tools/call", `"name":"local__echo","arguments":{},"task":{}`).At("/result/task/taskId").Text()
				if id != "" {
					want = append(want, id)
				}
				return id != ""
			})
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
	inSessions(t, func(t *testing.T, x *rig.Fixture, _ *learning, ask func(string, string) gate.Doc) {
		for name, tt := range map[string]struct{ method, params, code string }{
			"a task that never was":         {"tasks/get", `"taskId":"none"`, "-32602"},
			"the result of none":            {"tasks/result", `"taskId":"none"`, "-32602"},
			"to cancel none":                {"tasks/cancel", `"taskId":"none"`, "-32602"},
			"no id":                         {"tasks/get", ``, "-32602"},
			"an id that is a number":        {"tasks/get", `"taskId":1`, "-32602"},
			"a cursor of no one":            {"tasks/list", `"cursor":"none"`, "-32602"},
			"a cursor that is not a string": {"tasks/list", `"cursor":1`, "-32602"},
			"a method that is none":         {"tasks/none", ``, "-32601"},
			"a task that is not an object":  {"tools/call", `"name":"local__echo","arguments":{},"task":1`, "-32602"},
			"a ttl that is not a number":    {"tools/call", `"name":"local__echo","arguments":{},"task":{"ttl":"1"}`, "-32602"},
			"a ttl in the past":             {"tools/call", `"name":"local__echo","arguments":{},"task":{"ttl":-1}`, "-32602"},
			"a tool that no one has":        {"tools/call", `"name":"local__none","arguments":{},"task":{}`, "-32602"},
			"a tool that is hidden":         {"tools/call", `"name":"local__hidden","arguments":{},"task":{}`, "-32602"},
			"a tool that makes calls":       {"tools/call", `"name":"local__relays","arguments":{},"task":{}`, "-32601"},
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
		if x.Calls() != 0 {
			t.Errorf("%d calls were made", x.Calls())
		}
	})
}

// Clients must not call a tool as a task that does not say it can be (MCP 2025-11-25,
// basic/utilities/tasks, "Tool-Level Negotiation").
func TestTasksAreOffered(t *testing.T) {
	for name, w := range rig.Wires {
		t.Run(name, func(t *testing.T) {
			x, _ := newTaskFixture(t)
			all := gate.MustDoc(w.Dial(t, x)(rig.Request(w.Era, "1", "tools/list", "")))
			got := map[string]string{}
			for tool := range all.At("/result/tools").Elements() {
				got[tool.Get("name").Text()] = tool.Get("execution").String()
			}
			optional := ""
			if w.Era == rig.Old {
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
	resp, err := rig.Post(t.Context(), x.URL, rig.Old, "", rig.Hello)
	if err != nil {
		t.Fatal(err)
	}
	res := gate.MustDoc(rig.AnswerOf(t, resp)).Get("result")
	if got := res.At("/capabilities/tasks").String(); got != `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}` {
		t.Errorf("capabilities of tasks: %s", got)
	}
	if res.Get("protocolVersion").Text() != rig.Old || res.At("/capabilities/tools").IsZero() || resp.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("the rest of the answer: %s", res)
	}
	without := rig.NewFixture(t)
	resp, err = rig.Post(t.Context(), without.URL, rig.Old, "", rig.Hello)
	if err != nil {
		t.Fatal(err)
	}
	if got := gate.MustDoc(rig.AnswerOf(t, resp)).At("/result/capabilities/tasks"); !got.IsZero() {
		t.Errorf("a host without jobs declares tasks: %s", got)
	}
	for name, w := range rig.Wires {
		wire := w.Dial(t, without)
		if got := gate.MustDoc(wire(rig.Request(w.Era, "2", "tasks/list", ""))).At("/error/code").String(); got != "-32601" {
			t.Errorf("%s, a host without jobs: %s", name, got)
		}
		if got := gate.MustDoc(wire(rig.Request(w.Era, "3", "tools/call", `"name":"local__echo","arguments":{},"task":{}`))); got.At("/result/content").IsZero() {
			t.Errorf("%s, a host without jobs: %s, want a call without a task", name, got)
		}
	}
}

// The session that reads a result learns what it teaches, whichever session asked for
// the call.
func TestTaskResultTeaches(t *testing.T) {
	x, read := newTaskFixture(t)
	first, second := rig.OpenSession(t, x.URL), rig.OpenSession(t, x.URL)
	ask := func(session, method, params string) gate.Doc {
		resp, err := rig.Post(t.Context(), x.URL, rig.Old, session, rig.Request(rig.Old, "1", method, params))
		if err != nil {
			t.Fatal(err)
		}
		return gate.MustDoc(rig.AnswerOf(t, resp)).Get("result")
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
		if slices.Contains(labels, provenance.Untrusted) {
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
	id := gate.MustDoc(rig.DialHTTP(t, x, rig.Old)(rig.Request(rig.Old, "1", "tools/call", `"name":"local__block","arguments":{},"task":{}`))).At("/result/task/taskId").String()
	<-x.Begun
	bob := gate.Local()
	bob.ID = "bob"
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.Host.Serve(context.WithoutCancel(t.Context()), bob, inR, outW)
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
	ask(rig.Hello)
	if _, err := io.WriteString(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for i, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		got := ask(rig.Request(rig.Old, fmt.Sprint(i+2), method, `"taskId":`+id))
		if got.At("/error/message").Text() != "there is no such task" {
			t.Errorf("%s: %s", method, got)
		}
	}
	if got := ask(rig.Request(rig.Old, "9", "tasks/list", "")).At("/result/tasks").String(); got != "[]" {
		t.Errorf("tasks/list: %s", got)
	}
	inW.Close()
	<-served
	if len(x.Records.Done()) != 0 {
		t.Errorf("somebody else has ended the call: %q", x.Records.Done())
	}
}

// A task that has expired is distinguished from one that never existed, and is in no list.
func TestTaskThatHasExpired(t *testing.T) {
	runner, err := jobs.New(t.Context(), jobs.Options{Store: memoryStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	x, _ := newTaskFixtureWith(t, host.Config{Config: dispatch.Config{Jobs: runner}})
	wire := rig.DialHTTP(t, x, rig.Old)
	ask := func(method, params string) gate.Doc {
		return gate.MustDoc(wire(rig.Request(rig.Old, "1", method, params)))
	}
	id := ask("tools/call", `"name":"local__echo","arguments":{},"task":{"ttl":1}`).At("/result/task/taskId")
	rig.Within(t, "it expires", func() bool {
		j, err := runner.Status(t.Context(), gate.Local().Owner, id.Text())
		return err == nil && j.Expired
	})
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		if got := ask(method, `"taskId":`+id.String()); got.At("/error/message").Text() != "the task has expired" {
			t.Errorf("%s: %s", method, got)
		}
	}
	if err := runner.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask("tasks/list", "").At("/result/tasks").String(); got != "[]" {
		t.Errorf("listed are %s", got)
	}
}

// The task of a tool that no longer exists is shown only to clients that are offered everything.
// Clients that are offered some groups do not see it, because it is unknown whether the tool was in
// one.
func TestTaskOfAToolThatIsGone(t *testing.T) {
	runner, err := jobs.New(t.Context(), jobs.Options{Store: memoryStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	j, err := runner.Start(t.Context(), func(_ context.Context, c gate.Call) (gate.Result, error) {
		c.Client.Granted()
		return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
	}, gate.Call{Action: gate.CallTool, Name: "local__gone", Who: gate.Local()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := newTaskFixtureWith(t, host.Config{Config: dispatch.Config{Jobs: runner}, Access: transport.Access{Group: func(string) bool { return true }}})
	get := func(at string) gate.Doc {
		return rig.PostWith(t, x.URL+at, sessionless(1, "tasks/get", `"taskId":`+rig.Quote(j.ID), knowsTasks), func(map[string][]string) {})
	}
	if got := get(""); got.At("/result/taskId").Text() != j.ID {
		t.Errorf("to who is offered everything: %s", got)
	}
	if got := get("/group/a"); got.At("/error/message").Text() != "there is no such task" {
		t.Errorf("to who is offered a group: %s", got)
	}
	if dispatch.Offered(t.Context(), nil, "local__echo", gate.Groups{{"a"}}) {
		t.Error("a host that knows no tools offers one in a group")
	}
}
