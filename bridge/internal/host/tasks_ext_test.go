package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/store"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// tasked are tools whose server carries them out as tasks; they go on until release is
// closed.
func tasked(release <-chan struct{}) (all []options.LocalTool) {
	text := func(s string) gate.Result {
		return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":` + rig.Quote(s) + `}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"the server's"}}}`)}
	}
	asks := func(ctx context.Context, p gate.Permit) (string, error) {
		doc, err := p.Request(ctx, actions.Elicit, gate.MustDoc(strings.Replace(asksName, "{", `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"the server's"}},`, 1)))
		return doc.At("/content/name").Text(), err
	}
	for name, call := range map[string]func(context.Context, gate.Permit) (gate.Result, error){
		"tasked": func(ctx context.Context, p gate.Permit) (gate.Result, error) {
			p.Tasked()
			select {
			case <-release:
				return text("done"), nil
			case <-ctx.Done():
				return gate.Result{}, ctx.Err()
			}
		},
		"long": func(context.Context, gate.Permit) (gate.Result, error) {
			<-release
			return text("done"), nil
		},
		"broken": func(_ context.Context, p gate.Permit) (gate.Result, error) {
			p.Tasked()
			<-release
			return gate.Result{IsError: true, Doc: gate.MustDoc(`{"content":[{"type":"text","text":"no paper"}],"isError":true,"_meta":{"` + mcp.MetaError + `":{"code":-32000,"data":{"a":1}}}}`)}, nil
		},
		"claiming": func(_ context.Context, p gate.Permit) (gate.Result, error) {
			p.Tasked()
			<-release
			return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"ink"}],"_meta":{"` + mcp.MetaError + `":{"code":-32021}}}`)}, nil
		},
		"fault": func(_ context.Context, p gate.Permit) (gate.Result, error) {
			p.Tasked()
			<-release
			return gate.Result{}, &fault.Fault{Kind: fault.Transport, Server: "local", Doing: "call", Err: context.DeadlineExceeded}
		},
		"asking": func(ctx context.Context, p gate.Permit) (gate.Result, error) {
			p.Tasked()
			<-release
			one, err := asks(ctx, p)
			if err != nil {
				return text("error: " + err.Error()), nil
			}
			two, err := asks(ctx, p)
			return text(one + " " + two), err
		},
		"before": func(ctx context.Context, p gate.Permit) (gate.Result, error) {
			one, err := asks(ctx, p)
			if err != nil {
				return gate.Result{}, err
			}
			p.Tasked()
			<-release
			two, err := asks(ctx, p)
			return text(one + " " + two), err
		},
		"both": func(ctx context.Context, p gate.Permit) (gate.Result, error) {
			p.Tasked()
			<-release
			got := make(chan string)
			for range 2 {
				go func() {
					name, _ := asks(ctx, p)
					got <- name
				}()
			}
			names := []string{<-got, <-got}
			slices.Sort(names)
			return text(strings.Join(names, " ")), nil
		},
	} {
		all = append(all, options.LocalTool{Definition: gate.MustDoc(rig.Tool(name)), Call: func(ctx context.Context, _ *gate.Call, p gate.Permit) (gate.Result, error) { return call(ctx, p) }})
	}
	return append(all, options.LocalTool{Relay: true, Definition: gate.MustDoc(rig.Tool("relay")), Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		<-release
		return text("relayed"), nil
	}})
}

const (
	knowsTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	knowsNone  = `{"elicitation":{}}`
)

// sessionless writes a request without a session of a client that declares something.
func sessionless(id int, method, params, declares string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":%s}}}`, id, method, params, declares)
}

// A taskClient is a client without a session that knows of tasks.
type taskClient struct {
	t    *testing.T
	x    *rig.Fixture
	read *learning
	free func() // lets the tools go on
	send func(method, params, declares string) gate.Doc
}

// withoutSessions runs a test over the wires that have no sessions.
func withoutSessions(t *testing.T, cfg host.Config, test func(*testing.T, *taskClient)) {
	for name, w := range rig.Wires {
		if w.Era != rig.Newest {
			continue
		}
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			x, read := newTaskFixtureWith(t, cfg, tasked(release)...)
			wire, n := w.Dial(t, x), 0
			released := false
			test(t, &taskClient{t, x, read, func() {
				if !released {
					released = true
					close(release)
				}
			}, func(method, params, declares string) gate.Doc {
				t.Helper()
				n++
				return gate.MustDoc(wire(sessionless(n, method, params, declares)))
			}})
			if !released {
				close(release)
			}
		})
	}
}

// call calls a tool.
func (c *taskClient) call(name string) gate.Doc {
	c.t.Helper()
	return c.send("tools/call", `"name":"local__`+name+`","arguments":{}`, knowsTasks).Get("result")
}

// begin calls a tool that becomes a task.
func (c *taskClient) begin(name string) (id string) {
	c.t.Helper()
	made := c.call(name)
	if made.Get("resultType").Text() != "task" {
		c.t.Fatalf("%s is answered with %s", name, made)
	}
	return made.Get("taskId").String()
}

func (c *taskClient) about(method, id, more string) gate.Doc {
	c.t.Helper()
	return c.send(method, `"taskId":`+id+more, knowsTasks)
}

// until asks for a task until it is as wanted.
func (c *taskClient) until(id, status string) (task gate.Doc) {
	c.t.Helper()
	rig.Within(c.t, "the task is "+status, func() bool {
		task = c.about("tasks/get", id, "").Get("result")
		return task.Get("status").Text() == status
	})
	return task
}

func TestCallBecomesTask(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		made := c.call("tasked")
		if made.Get("resultType").Text() != "task" || made.Get("status").Text() != "working" || made.Get("ttlMs").String() != "86400000" || made.Get("pollIntervalMs").String() != "1000" {
			t.Fatalf("it is answered with %s", made)
		}
		for _, name := range []string{"task", "ttl", "pollInterval", "result", "error", "inputRequests", "requestState"} {
			if !made.Get(name).IsZero() {
				t.Errorf("it has %s", name)
			}
		}
		for _, at := range []string{"createdAt", "lastUpdatedAt"} {
			if _, err := time.Parse(time.RFC3339, made.Get(at).Text()); err != nil {
				t.Error(err)
			}
		}
		id := made.Get("taskId").String()
		if got := c.about("tasks/get", id, "").Get("result"); got.Get("status").Text() != "working" || got.Get("resultType").Text() != "complete" || got.Get("taskId").String() != id {
			t.Errorf("asked at once it is %s", got)
		}
		c.free()
		got := c.until(id, "completed")
		if res := got.Get("result"); res.At("/content/0/text").Text() != "done" || !res.Get("_meta").Get("io.modelcontextprotocol/related-task").IsZero() {
			t.Errorf("in the end it is %s", got)
		}
		if diff := cmp.Diff([]string{"local__tasked ok"}, c.x.Records.Done()); diff != "" {
			t.Error(diff)
		}
		c.read.mu.Lock()
		defer c.read.mu.Unlock()
		if len(c.read.taught) != 1 {
			t.Errorf("taught are %v", c.read.taught)
		}
	})
}

// Calls are answered as ever where nothing makes tasks of them, or their client has not
// said that it knows of tasks.
func TestCallThatBecomesNoTask(t *testing.T) {
	withoutSessions(t, host.Config{Config: dispatch.Config{TaskAfter: time.Millisecond}}, func(t *testing.T, c *taskClient) {
		c.free()
		for name, declares := range map[string]string{"tasked": knowsNone, "long": `{"extensions":{"io.modelcontextprotocol/other":{}}}`, "relay": knowsTasks} {
			got := c.send("tools/call", `"name":"local__`+name+`","arguments":{},"task":{"ttl":1}`, declares).Get("result")
			if got.Get("resultType").Text() != "complete" || got.At("/content/0/text").IsZero() {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		if got := c.send("tools/call", `"name":"local__echo","arguments":{}`, knowsTasks).Get("result"); got.Get("resultType").Text() != "complete" {
			t.Errorf("a quick call: %s", got)
		}
		if got := c.send("tools/call", `"name":"local__denied","arguments":{}`, knowsTasks).Get("result"); got.Get("_meta").Get(gate.MetaRefusal).Get("code").Text() != "refused_authorize" {
			t.Errorf("a call that is refused: %s", got)
		}
		if got := c.send("tools/call", `"name":"local__hidden","arguments":{}`, knowsTasks); got.At("/error/code").String() != "-32602" {
			t.Errorf("a call of a hidden tool: %s", got)
		}
	})
}

// However long it goes on and whatever its server says, no task comes of what is no call of a
// tool, of a tool that makes calls itself, for a client that does not know of tasks, or where
// there are none.
func TestWhatIsToBeNoTask(t *testing.T) {
	runner, err := jobs.New(t.Context(), jobs.Options{Store: memoryStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runner.Close(context.Background()) })
	for name, tt := range map[string]struct {
		method, tool, declares string
		none, task             bool
	}{
		"a call":                         {"tools/call", "t", knowsTasks, false, true},
		"a prompt":                       {"prompts/get", "t", knowsTasks, false, false},
		"a tool that makes calls":        {"tools/call", "relay", knowsTasks, false, false},
		"a client that knows of none":    {"tools/call", "t", knowsNone, false, false},
		"a gateway where there are none": {"tools/call", "t", knowsTasks, true, false},
	} {
		mayBe, answered := make(chan bool, 1), make(chan struct{})
		h, err := host.New(host.Config{
			Config: dispatch.Config{
				Do: func(_ context.Context, c gate.Call) (gate.Result, error) {
					c.Client.Granted()
					mayBe <- c.Reach().MayBeTask
					if tt.declares == knowsTasks {
						c.Client.Tasked()
					}
					if tt.task {
						<-answered
					} else {
						time.Sleep(50 * time.Millisecond)
					}
					return gate.Result{Doc: gate.MustDoc("{}")}, nil
				},
				Tools:    func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
				Features: func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error) { return nil, nil },
				Offering: func(context.Context) mcp.Offering { return mcp.Offering{Prompts: true} },
				Lookup: func(_ context.Context, _ gate.Action, name string) (*gate.Tool, error) {
					return &gate.Tool{Relay: name == "relay"}, nil
				},
				Jobs:      runner,
				Recall:    func(context.Context, gate.Call, gate.Result) error { return nil },
				TaskAfter: time.Millisecond,
			},
			Terms: host.Terms{NoTasks: tt.none},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := gate.MustDoc(rig.AnswerOf(t, rig.Serve(t, h, rig.Newest, sessionless(1, tt.method, `"name":"`+tt.tool+`"`, tt.declares))))
		close(answered)
		want := map[bool]string{true: "task", false: "complete"}[tt.task]
		if got.At("/result/resultType").Text() != want || <-mayBe != tt.task {
			t.Errorf("%s: %s, want that it is %s", name, got, want)
		}
	}
}

// A call that goes on for long becomes a task, also of a client that can be asked nothing.
func TestLongCallBecomesTask(t *testing.T) {
	withoutSessions(t, host.Config{Config: dispatch.Config{TaskAfter: 10 * time.Millisecond}}, func(t *testing.T, c *taskClient) {
		made := c.send("tools/call", `"name":"local__long","arguments":{}`, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
		id := made.At("/result/taskId").String()
		if made.At("/result/resultType").Text() != "task" {
			t.Fatalf("it is answered with %s", made)
		}
		c.free()
		if got := c.until(id, "completed"); got.At("/result/content/0/text").Text() != "done" {
			t.Errorf("it is %s", got)
		}
	})
}

// A call that cannot become a task, for too many run, is answered when it ends.
func TestCallForWhichThereIsNoTask(t *testing.T) {
	db := memoryStore(t)
	runner, err := jobs.New(t.Context(), jobs.Options{Store: db, Each: 1})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	endless := options.LocalTool{Definition: gate.MustDoc(rig.Tool("endless")), Call: func(ctx context.Context, _ *gate.Call, p gate.Permit) (gate.Result, error) {
		p.Tasked()
		<-ctx.Done()
		return gate.Result{}, ctx.Err()
	}}
	x, _ := newTaskFixtureWith(t, host.Config{Config: dispatch.Config{TaskAfter: time.Millisecond, Jobs: runner}}, append(tasked(release), endless)...)
	wire := rig.DialHTTP(t, x, rig.Newest)
	calls := func(name string) gate.Doc {
		return gate.MustDoc(wire(sessionless(1, "tools/call", `"name":"local__`+name+`","arguments":{}`, knowsTasks))).Get("result")
	}
	if got := calls("endless"); got.Get("resultType").Text() != "task" { // it is one until the test ends
		t.Fatalf("the first is answered with %s", got)
	}
	time.AfterFunc(20*time.Millisecond, func() { close(release) })
	if got := calls("long"); got.At("/content/0/text").Text() != "done" {
		t.Errorf("the second is answered with %s", got)
	}
}

// The result of a task that ran when the gateway ended is unknown.
func TestTaskOfAGatewayThatHasEnded(t *testing.T) {
	db := memoryStore(t)
	before, err := jobs.New(t.Context(), jobs.Options{Store: db})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended); before.Close(context.Background()) })
	j, err := before.Start(t.Context(), func(_ context.Context, c gate.Call) (gate.Result, error) {
		c.Client.Granted()
		<-ended
		return gate.Result{}, nil
	}, gate.Call{Action: gate.CallTool, Name: "local__echo", Who: gate.Local()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jobs.New(t.Context(), jobs.Options{Store: db})
	if err != nil {
		t.Fatal(err)
	}
	x, _ := newTaskFixtureWith(t, host.Config{Config: dispatch.Config{Jobs: after}})
	got := gate.MustDoc(rig.DialHTTP(t, x, rig.Newest)(sessionless(1, "tasks/get", `"taskId":`+rig.Quote(j.ID), knowsTasks))).Get("result")
	if got.Get("status").Text() != "failed" || got.At("/error/code").String() != "-32603" || !strings.Contains(got.At("/error/message").Text(), "restarted") || !got.Get("result").IsZero() {
		t.Errorf("it is %s", got)
	}
}

func memoryStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestHowTasksEnd(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		broken, fault, cancelled, claiming := c.begin("broken"), c.begin("fault"), c.begin("tasked"), c.begin("claiming")
		for range 2 {
			if got := c.about("tasks/cancel", cancelled, "").Get("result"); without(got) != `{"resultType":"complete"}` {
				t.Errorf("cancelling is answered with %s", got)
			}
		}
		if got := c.until(cancelled, "cancelled"); !got.Get("result").IsZero() || !got.Get("error").IsZero() {
			t.Errorf("cancelled it is %s", got)
		}
		c.free()
		got := c.until(broken, "failed")
		if got.Get("error").String() != `{"code":-32000,"message":"no paper","data":{"a":1}}` || !got.Get("result").IsZero() {
			t.Errorf("a JSON-RPC error makes it %s", got)
		}
		if got := c.until(claiming, "completed"); got.At("/result/content/0/text").Text() != "ink" || !got.Get("error").IsZero() {
			t.Errorf("a result that calls itself an error makes it %s", got)
		}
		got = c.until(fault, "completed")
		if !got.At("/result/isError").True() || got.At("/result/_meta").Get(gate.MetaRefusal).Get("code").Text() != "transport" || !got.Get("error").IsZero() {
			t.Errorf("a fault makes it %s", got)
		}
		for method, more := range map[string]string{"tasks/cancel": "", "tasks/update": `,"inputResponses":{}`} {
			if got := c.about(method, fault, more).Get("result"); without(got) != `{"resultType":"complete"}` {
				t.Errorf("%s of one that has ended is answered with %s", method, got)
			}
		}
	})
}

// without returns a result without what it says of the gateway.
func without(res gate.Doc) string {
	doc := gate.MustDoc("{}")
	for name, v := range res.Members() {
		if name != "_meta" {
			doc = doc.With(name, v.Raw())
		}
	}
	return doc.String()
}

func taskAnswers(key, name string) string {
	return fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{"name":%q}}}`, key, name)
}

// TestTaskAsks: what a server asks while its call is a task, its client finds there.
func TestTaskAsks(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		c.free()
		id := c.begin("asking")
		got := c.until(id, "input_required")
		if want := `{"ask-1":{"method":"elicitation/create","params":` + strings.Replace(asksName, "{", `{"_meta":{},`, 1) + `}}`; got.Get("inputRequests").String() != want {
			t.Errorf("it asks %s, want %s", got.Get("inputRequests"), want)
		}
		for name, more := range map[string]string{"nothing": `,"inputResponses":{}`, "what was not asked": `,"inputResponses":{"ask-7":{"ignored":true}}`} {
			if ack := c.about("tasks/update", id, more).Get("result"); without(ack) != `{"resultType":"complete"}` {
				t.Errorf("to answer %s is answered with %s", name, ack)
			}
		}
		for name, more := range map[string]string{"no object": `,"inputResponses":[]`, "none": ``, "no result": `,"inputResponses":{"ask-1":{"name":1}}`} {
			if no := c.about("tasks/update", id, more); no.At("/error/code").String() != "-32602" {
				t.Errorf("to answer %s is answered with %s", name, no)
			}
		}
		c.until(id, "input_required")
		if ack := c.about("tasks/update", id, taskAnswers("ask-1", "Ada")).Get("result"); without(ack) != `{"resultType":"complete"}` {
			t.Errorf("the answer is answered with %s", ack)
		}
		rig.Within(t, "it asks again, under another key", func() bool {
			return !c.about("tasks/get", id, "").At("/result/inputRequests/ask-2").IsZero()
		})
		c.about("tasks/update", id, taskAnswers("ask-1", "Eve"))
		c.about("tasks/update", id, taskAnswers("ask-2", "Bob"))
		if got := c.until(id, "completed"); got.At("/result/content/0/text").Text() != "Ada Bob" {
			t.Errorf("in the end it is %s", got)
		}
	})
}

func TestTaskIsAnsweredInParts(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		c.free()
		id := c.begin("both")
		rig.Within(t, "it asks two things", func() bool { return !c.about("tasks/get", id, "").At("/result/inputRequests/ask-2").IsZero() })
		c.about("tasks/update", id, taskAnswers("ask-1", "Ada"))
		got := c.about("tasks/get", id, "").Get("result")
		if got.Get("status").Text() != "input_required" || !got.At("/inputRequests/ask-1").IsZero() || got.At("/inputRequests/ask-2").IsZero() {
			t.Errorf("with one answer it is %s", got)
		}
		c.about("tasks/update", id, taskAnswers("ask-2", "Bob"))
		if got := c.until(id, "completed"); got.At("/result/content/0/text").Text() != "Ada Bob" {
			t.Errorf("in the end it is %s", got)
		}
	})
}

// What is asked before there is a task is asked by the answer to the call.
func TestCallAsksAndThenBecomesTask(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		c.free()
		first := c.call("before")
		if first.Get("resultType").Text() != "input_required" || !first.Get("taskId").IsZero() || first.At("/inputRequests/ask-1").IsZero() {
			t.Fatalf("it is answered with %s", first)
		}
		made := c.send("tools/call", `"name":"local__before","arguments":{},"requestState":`+first.Get("requestState").String()+taskAnswers("ask-1", "Ada"), knowsTasks).Get("result")
		if made.Get("resultType").Text() != "task" || !made.Get("requestState").IsZero() {
			t.Fatalf("the second round is answered with %s", made)
		}
		id := made.Get("taskId").String()
		c.until(id, "input_required")
		c.about("tasks/update", id, taskAnswers("ask-2", "Bob"))
		if got := c.until(id, "completed"); got.At("/result/content/0/text").Text() != "Ada Bob" {
			t.Errorf("in the end it is %s", got)
		}
	})
}

// A client that does not say with the second round that it knows of tasks gets none, though it
// has said so with the first.
func TestTaskIsForWhoKnowsOfThem(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		c.free()
		first := c.call("before")
		got := c.send("tools/call", `"name":"local__before","arguments":{},"requestState":`+first.Get("requestState").String()+taskAnswers("ask-1", "Ada"), knowsNone).Get("result")
		if got.Get("resultType").Text() != "input_required" || got.At("/inputRequests/ask-2").IsZero() {
			t.Errorf("it is answered with %s", got)
		}
	})
}

// A call that waited for its client, and is a task now, makes room for no other.
func TestTaskDoesNotExpire(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		first := c.call("before")
		id := c.send("tools/call", `"name":"local__before","arguments":{},"requestState":`+first.Get("requestState").String()+taskAnswers("ask-1", "Ada"), knowsTasks).At("/result/taskId").String()
		if c.read.expire() == 0 {
			t.Fatal("no call can expire")
		}
		c.free()
		c.until(id, "input_required")
	})
}

// A server does not wait for ever for a client that does not come.
func TestNobodyAnswersTask(t *testing.T) {
	timelimit.Grow(t, 20*time.Millisecond, func(limit time.Duration) (err error) {
		withoutSessions(t, host.Config{Config: dispatch.Config{ParkIdle: limit}}, func(t *testing.T, c *taskClient) {
			c.free()
			made := c.call("asking")
			if made.Get("resultType").Text() != "task" {
				err = fmt.Errorf("the question ended before the call was a task: %s", made)
				return
			}
			if got := c.until(made.Get("taskId").String(), "completed"); !strings.Contains(got.At("/result/content/0/text").Text(), "the client has not answered") {
				t.Errorf("it is %s", got)
			}
		})
		return err
	})
}

func TestExtensionRequestsThatAreRefused(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		id := c.begin("tasked")
		for name, tt := range map[string]struct{ method, params, declares, code string }{
			"a task that never was":           {"tasks/get", `"taskId":"none"`, knowsTasks, "-32602"},
			"to update none":                  {"tasks/update", `"taskId":"none","inputResponses":{}`, knowsTasks, "-32602"},
			"to cancel none":                  {"tasks/cancel", `"taskId":"none"`, knowsTasks, "-32602"},
			"no id":                           {"tasks/get", ``, knowsTasks, "-32602"},
			"not declared":                    {"tasks/get", `"taskId":` + id, knowsNone, "-32021"},
			"to update, not declared":         {"tasks/update", `"taskId":` + id + `,"inputResponses":{}`, knowsNone, "-32021"},
			"to cancel, not declared":         {"tasks/cancel", `"taskId":` + id, knowsNone, "-32021"},
			"the result, which is older":      {"tasks/result", `"taskId":` + id, knowsTasks, "-32601"},
			"the list, which is older":        {"tasks/list", ``, knowsTasks, "-32601"},
			"to listen to what is not a list": {"subscriptions/listen", `"notifications":{"taskIds":{}}`, knowsTasks, "-32602"},
			"to listen, not declared":         {"subscriptions/listen", `"notifications":{"taskIds":[` + id + `]}`, knowsNone, "-32021"},
		} {
			got := c.send(tt.method, tt.params, tt.declares)
			if got.At("/error/code").String() != tt.code {
				t.Errorf("%s: %s, want %s", name, got, tt.code)
			}
			if tt.code == "-32021" && got.At("/error/data").String() != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := c.until(id, "working"); got.Get("taskId").String() != id {
			t.Errorf("it is %s", got)
		}
	})
	inSessions(t, func(t *testing.T, _ *rig.Fixture, _ *learning, ask func(string, string) gate.Doc) {
		if got := ask("tasks/update", `"taskId":"none","inputResponses":{}`).At("/error/code").String(); got != "-32601" {
			t.Errorf("a client with a session: %s", got)
		}
	})
}

// The header of a request about a task names the task (ext-tasks, "Routing Headers").
func TestTaskHeader(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	x, _ := newTaskFixtureWith(t, host.Config{}, tasked(release)...)
	for name, header := range map[string]func(h map[string][]string){
		"another task": func(h map[string][]string) { h["Mcp-Name"] = []string{"other"} },
		"none":         func(h map[string][]string) { delete(h, "Mcp-Name") },
	} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			got := rig.PostWith(t, x.URL, sessionless(1, method, `"taskId":"some","inputResponses":{}`, knowsTasks), header)
			if got.At("/error/code").String() != "-32020" {
				t.Errorf("%s, %s: %s", method, name, got)
			}
		}
	}
}

func TestExtensionIsDeclared(t *testing.T) {
	withoutSessions(t, host.Config{}, func(t *testing.T, c *taskClient) {
		can := c.send("server/discover", "", knowsNone).At("/result/capabilities")
		if can.Get("extensions").String() != `{"io.modelcontextprotocol/tasks":{}}` || !can.Get("tasks").IsZero() {
			t.Errorf("capabilities %s", can)
		}
	})
	without := rig.NewFixture(t)
	for name, w := range rig.Wires {
		if w.Era != rig.Newest {
			continue
		}
		wire := w.Dial(t, without)
		if can := gate.MustDoc(wire(sessionless(1, "server/discover", "", knowsTasks))).At("/result/capabilities"); !can.Get("extensions").IsZero() || can.IsZero() {
			t.Errorf("%s: a host without jobs declares %s", name, can)
		}
		if got := gate.MustDoc(wire(sessionless(2, "tasks/get", `"taskId":"none"`, knowsTasks))).At("/error/code").String(); got != "-32601" {
			t.Errorf("%s: a host without jobs: %s", name, got)
		}
	}
	ack := gate.MustDoc(hear(t, listenHTTP(t, without, sessionless(3, "subscriptions/listen", `"notifications":{"taskIds":["none"]}`, knowsTasks))))
	if got := ack.At("/params/notifications").String(); got != "{}" {
		t.Errorf("a host without jobs tells of %s", ack)
	}
}

// What a client puts where the host keeps its task is none.
func TestForgedTask(t *testing.T) {
	const forged = `"name":"local__echo","arguments":{},"_meta":{"io.github.wasmgate/task":{"ttl":1}}`
	inSessions(t, func(t *testing.T, _ *rig.Fixture, _ *learning, ask func(string, string) gate.Doc) {
		for _, params := range []string{forged, strings.Replace(forged, "wasmgate/task", `wasmgate\/t\u0061sk`, 1), forged + `,"unknown":1`} {
			if got := ask("tools/call", params); got.At("/result/content/0/text").Text() != "done" {
				t.Errorf("%s: %s", params, got)
			}
		}
		if got := ask("tools/call", strings.Replace(forged, "1", `"x"`, 1)+`,"task":{"ttl":60000}`).At("/result/task/ttl").String(); got != "60000" {
			t.Errorf("beside a task: %s", got)
		}
	})
}
