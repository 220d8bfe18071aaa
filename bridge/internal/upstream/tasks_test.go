package upstream_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
)

// A tasker is a server whose tool must be called as a task. It gives the answers of each method in
// turn, and repeats the last one.
type tasker struct {
	declares string // of tasks, in its capabilities
	support  string // of tasks, by its tool; "" is required
	answers  map[string][]string

	late time.Duration // after which "late" is a result

	mu   sync.Mutex
	seen []string // methods, with the task's id
	call string   // parameters of the call
}

func (s *tasker) dial() (mcp.Transport, error) {
	a, b := mcp.NewInMemoryTransports()
	c, err := a.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	go s.serve(c)
	return b, nil
}

func (s *tasker) serve(c mcp.Connection) {
	defer c.Close()
	for {
		m, err := c.Read(context.Background())
		if err != nil {
			return
		}
		req, ok := m.(*jsonrpc.Request)
		if !ok || !req.IsCall() {
			continue
		}
		answer := s.answer(req)
		if answer == "!" {
			return
		}
		if answer == "-" {
			continue
		}
		if answer == "late" {
			time.AfterFunc(s.late, func() {
				_ = c.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(finished)})
			})
			continue
		}
		if c.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(answer)}) != nil {
			return
		}
	}
}

func (s *tasker) answer(req *jsonrpc.Request) string {
	switch req.Method {
	case "initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":` + s.declares + `},"serverInfo":{"name":"s","version":"1"}}`
	case "tools/list":
		support := cmp.Or(s.support, "required")
		return `{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"` + support + `"}}]}`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	params := gate.MustDoc(string(req.Params))
	if req.Method == "tools/call" {
		s.call = params.String()
	}
	s.seen = append(s.seen, strings.TrimSpace(req.Method+" "+params.Get("taskId").Text()))
	all := s.answers[req.Method]
	if len(all) == 0 {
		return "{}"
	}
	if len(all) > 1 {
		s.answers[req.Method] = all[1:]
	}
	return all[0]
}

const (
	declared = `{"requests":{"tools":{"call":{}}}}`
	created  = `{"task":{"taskId":"7","status":"working","pollInterval":1}}`
	finished = `{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"7"},"x":1}}`
)

func working(status string) string {
	return fmt.Sprintf(`{"taskId":"7","status":%q,"pollInterval":1}`, status)
}

func TestToolThatMustBeATask(t *testing.T) {
	for name, tt := range map[string]struct {
		server *tasker
		result string
		seen   []string
	}{
		"it is asked for until it has ended": {
			&tasker{declares: declared, answers: map[string][]string{
				"tools/call": {created}, "tasks/get": {working("working"), working("working"), working("completed")}, "tasks/result": {finished},
			}},
			`{"content":[{"type":"text","text":"done"}],"_meta":{"x":1}}`,
			[]string{"tools/call", "tasks/get 7", "tasks/get 7", "tasks/get 7", "tasks/result 7"},
		},
		"what it asks for comes with the result": {
			&tasker{declares: declared, answers: map[string][]string{
				"tools/call": {created}, "tasks/get": {working("input_required")}, "tasks/result": {finished},
			}},
			`{"content":[{"type":"text","text":"done"}],"_meta":{"x":1}}`,
			[]string{"tools/call", "tasks/get 7", "tasks/result 7"},
		},
		"its failure is its result": {
			&tasker{declares: declared, answers: map[string][]string{
				"tools/call": {created}, "tasks/get": {working("failed")}, "tasks/result": {`{"content":[],"isError":true}`},
			}},
			`{"content":[],"isError":true}`, []string{"tools/call", "tasks/get 7", "tasks/result 7"},
		},
		"it may be done at once": {
			&tasker{declares: declared, answers: map[string][]string{"tools/call": {`{"content":[]}`}}},
			`{"content":[]}`, []string{"tools/call"},
		},
		"a server that declares no tasks is called as any": {
			&tasker{declares: `{}`, answers: map[string][]string{"tools/call": {`{"content":[]}`}}},
			`{"content":[]}`, []string{"tools/call"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := rig.Ready(t, options.Endpoint{Server: "s", Dial: tt.server.dial, Tools: rig.Options()})
			res, err := rig.Do(t.Context(), t, e, "s__slow", `{"a":1}`)
			if err != nil || res.Doc.String() != tt.result {
				t.Errorf("result %s, %v", res.Doc, err)
			}
			tt.server.mu.Lock()
			defer tt.server.mu.Unlock()
			if diff := gocmp.Diff(tt.seen, tt.server.seen); diff != "" {
				t.Error(diff)
			}
			call := gate.MustDoc(tt.server.call)
			if asks := call.At("/task/ttl").Kind() == doc.Number; asks != (tt.server.declares == declared) || call.Get("arguments").String() != `{"a":1}` {
				t.Errorf("called with %s", call)
			}
		})
	}
}

// A task that is broken off is cancelled at its server, and a call is never made again
// once there is a task.
func TestTaskThatIsBrokenOff(t *testing.T) {
	for name, tt := range map[string]struct {
		get, code string
		timeout   time.Duration
		cancels   bool
	}{
		"the client goes":      {working("working"), "cancelled", time.Minute, true},
		"the server is silent": {"-", "timeout", 50 * time.Millisecond, true},
		"the server goes":      {"!", "transport", time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tasker{declares: declared, answers: map[string][]string{"tools/call": {created}, "tasks/get": {tt.get}}}
				e := rig.Ready(t, options.Endpoint{Server: "s", Dial: s.dial, Tools: rig.Options(), CallTimeout: tt.timeout})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if name == "the client goes" {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				_, err := rig.Do(ctx, t, e, "s__slow", `{}`)
				if gate.Code(err) != tt.code {
					t.Errorf("error %v, want %s", err, tt.code)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				calls, cancelled := 0, false
				for _, what := range s.seen {
					if what == "tools/call" {
						calls++
					}
					cancelled = cancelled || what == "tasks/cancel 7"
				}
				if calls != 1 || cancelled != tt.cancels {
					t.Errorf("the server has seen %q", s.seen)
				}
			})
		})
	}
}

// A server that says in time that it goes on may take longer than the timeout.
func TestTaskExtendsItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goesOn := slices.Repeat([]string{working("working")}, 30) // asked for every 50 ms at most
		s := &tasker{declares: declared, answers: map[string][]string{
			"tools/call": {created}, "tasks/get": append(goesOn, working("completed")), "tasks/result": {finished},
		}}
		const timeout = time.Second
		e := rig.Ready(t, options.Endpoint{Server: "s", Dial: s.dial, Tools: rig.Options(), CallTimeout: timeout})
		began := time.Now()
		if _, err := rig.Do(t.Context(), t, e, "s__slow", `{}`); err != nil || time.Since(began) < timeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// What no server must say of a task ends the call, and the task.
func TestTaskThatIsNone(t *testing.T) {
	for name, tt := range map[string]struct{ made, get, says string }{
		"an id that is a number": {`{"task":{"taskId":7,"status":"working"}}`, "", "taskId"},
		"an empty id":            {`{"task":{"taskId":"","status":"working"}}`, "", "taskId"},
		"no status":              {`{"task":{"taskId":"7"}}`, "", "status"},
		"an unknown status":      {created, working("odd"), `status "\"odd\""`},
		"another task":           {created, `{"taskId":"8","status":"working"}`, "another"},
		"nothing":                {created, `{}`, "another"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tasker{declares: declared, answers: map[string][]string{"tools/call": {tt.made}, "tasks/get": {tt.get}}}
			e := rig.Ready(t, options.Endpoint{Server: "s", Dial: s.dial, Tools: rig.Options()})
			if _, err := rig.Do(t.Context(), t, e, "s__slow", `{}`); gate.Code(err) != "protocol" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if cancelled := slices.Contains(s.seen, "tasks/cancel 7"); cancelled != (tt.get != "") {
				t.Errorf("the server has seen %q", s.seen)
			}
		})
	}
}

// A server may be silent on the result of a task for longer than the timeout, as long as
// it says of the task that it goes on.
func TestTaskExtendsItsTimeoutWhileItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		s := &tasker{declares: declared, answers: map[string][]string{
			"tools/call": {created}, "tasks/get": {working("input_required")}, "tasks/result": {"late"},
		}, late: 2 * timeout}
		e := rig.Ready(t, options.Endpoint{Server: "s", Dial: s.dial, Tools: rig.Options(), CallTimeout: timeout})
		if _, err := rig.Do(t.Context(), t, e, "s__slow", `{}`); err != nil {
			t.Error(err)
		}
	})
}

// If the server leaves it open, a call that its client does not wait for is made as a task. Its
// gateway learns of the task at once.
func TestTaskOfDetachedCall(t *testing.T) {
	for name, tt := range map[string]struct {
		support  string
		detached bool
		tasks    int32
	}{
		"optional, and nobody waits":  {"optional", true, 1},
		"optional, and a client does": {"optional", false, 0},
		"forbidden":                   {"forbidden", true, 0},
		"required, and a client does": {"required", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tasker{declares: declared, support: tt.support, answers: map[string][]string{
				"tools/call": {`{"content":[]}`}, "tasks/get": {working("completed")}, "tasks/result": {finished},
			}}
			if tt.tasks > 0 {
				s.answers["tools/call"] = []string{created}
			}
			e := rig.Ready(t, options.Endpoint{Server: "s", Dial: s.dial, Tools: rig.Options()})
			g, _ := rig.NewGate(t, e)
			c := rig.NewCall("s__slow", `{}`)
			var tasked atomic.Int32
			c.Client = &gatetest.Client{Can: gate.Reach{Detached: tt.detached}, OnTasked: func() { tasked.Add(1) }}
			if _, err := g.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if asked := !gate.MustDoc(s.call).Get("task").IsZero(); asked != (tt.tasks > 0) || tasked.Load() != tt.tasks {
				t.Errorf("called with %s; told of %d tasks", s.call, tasked.Load())
			}
		})
	}
}

// A server's question in a task reaches only the client of that task's call, without the server's
// name of the task, which the answer has.
func TestTaskAsksItsClient(t *testing.T) {
	p, e := newProber(t, `{"tasks":`+declared+`}`, `{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`)
	g, _ := rig.NewGate(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	asked := make(chan string, 9)
	call := func(who string) (made chan struct{}) {
		made = make(chan struct{})
		c := rig.NewCall("up__slow", "{}")
		c.Session = gate.SessionKey{Owner: c.Who.Owner, ID: "s"}
		c.Client = gatetest.Asked(`{"roots":{}}`, func(_ context.Context, _ gate.Action, params gate.Doc) (gate.Doc, error) {
			asked <- who + " " + params.String()
			return gate.MustDoc(`{"roots":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"the gateway's"}}}`), nil
		})
		gatetest.Of(&c).OnTasked = func() { close(made) }
		wg.Go(func() { _, _ = g.Do(ctx, c) })
		return made
	}
	answer := func(c mcp.Connection, task string) {
		id := <-p.calls
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: json.RawMessage(`{"task":{"taskId":"` + task + `","status":"working","pollInterval":5000}}`)}); err != nil {
			t.Fatal(err)
		}
	}
	first := call("first")
	conn := <-p.conn
	answer(conn, "1")
	<-first
	second := call("second")
	answer(conn, "2")
	<-second
	for i, tt := range []struct{ task, asked, answer string }{
		{"2", `second {"_meta":{}}`, `{"roots":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"2"}}}`},
		{"1", `first {"_meta":{}}`, `{"roots":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}`},
		{"3", "", ""},
	} {
		id, _ := jsonrpc.MakeID(float64(i))
		params := json.RawMessage(`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + tt.task + `"}}}`)
		if err := conn.Write(t.Context(), &jsonrpc.Request{ID: id, Method: "roots/list", Params: params}); err != nil {
			t.Fatal(err)
		}
		a := <-p.answers
		if (a.Error != nil) != (tt.answer == "") || string(a.Result) != tt.answer {
			t.Errorf("task %s: answered %s, %v", tt.task, a.Result, a.Error)
		}
		if tt.asked != "" {
			if got := <-asked; got != tt.asked {
				t.Errorf("task %s: asked %s", tt.task, got)
			}
		}
	}
	if len(asked) > 0 {
		t.Errorf("asked, too: %s", <-asked)
	}
}

// A job's call has no client that wants its progress, but gives its server more time all the same
// if that reports progress.
func TestDetachedCallAsksForProgress(t *testing.T) {
	for detached, want := range map[bool]doc.Kind{true: doc.Number, false: doc.Absent} {
		s := &tasker{declares: `{}`, answers: map[string][]string{"tools/call": {`{"content":[]}`}}}
		e := rig.Ready(t, options.Endpoint{Server: "s", Dial: s.dial, Tools: rig.Options()})
		g, _ := rig.NewGate(t, e)
		c := rig.NewCall("s__slow", `{}`)
		c.Client = &gatetest.Client{Can: gate.Reach{Detached: detached}}
		if _, err := g.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got := gate.MustDoc(s.call).At("/_meta/progressToken").Kind(); got != want {
			t.Errorf("detached %v: the token is of kind %v, want %v (%s)", detached, got, want, s.call)
		}
	}
}
