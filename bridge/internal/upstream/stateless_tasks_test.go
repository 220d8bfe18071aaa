package upstream_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

const (
	offersTasks = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	fine        = `{"content":[{"type":"text","text":"fine"}]}`
)

// task is what a server of MCP 2026-07-28 says of a task that is to be asked for soon,
// with more members.
func task(status, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"resultType":"complete","taskId":"t 1","status":%q,"createdAt":"2026-07-28T10:00:00Z","lastUpdatedAt":"2026-07-28T10:00:00Z","ttlMs":null,"pollIntervalMs":1%s}`, status, more)
}

// makes is a task as the answer to a call.
func makes(status string) string {
	return strings.Replace(task(status, ""), `"complete"`, `"task"`, 1)
}

// newTaskServer returns a server of MCP 2026-07-28 that makes a task of a call, and then
// says of it one thing after the other.
func newTaskServer(says ...string) *rig.Modern {
	m := rig.NewModern(map[string]string{"server/discover": offersTasks, "tasks/update": `{"resultType":"complete"}`, "tasks/cancel": `{"resultType":"complete"}`})
	m.Turns = map[string][]string{"tools/call": {makes("working")}, "tasks/get": says}
	return m
}

// TestModernTask: how a call ends if a server of MCP 2026-07-28 makes a task of it.
func TestModernTask(t *testing.T) {
	unraced.Long(t)
	wants := func(requests string) string { // which gives the client time to answer before it is asked for again
		return strings.Replace(task("input_required", `"inputRequests":`+requests), `"pollIntervalMs":1`, `"pollIntervalMs":300`, 1)
	}
	done := task("completed", `"result":`+fine)
	ann, home := `{"action":"accept","content":{"name":"Ann"}}`, `{"roots":[{"uri":"file:///home"}]}`
	var without []string // an end
	for i := range 7 {
		requests := make([]string, 16)
		for j := range requests {
			requests[j] = fmt.Sprintf(`"%d":%s`, 16*i+j, askRoots)
		}
		without = append(without, task("input_required", `"inputRequests":{`+strings.Join(requests, ",")+`}`))
	}
	tests := map[string]struct {
		says []string
		code string
		text string // of the result, or of the error
		sent []string
	}{
		"it is asked for until it has ended": {
			[]string{task("working", ""), task("working", ""), done}, "ok", "fine",
			[]string{"tools/call", "tasks/get", "tasks/get", "tasks/get"},
		},
		"what it asks for is asked once, and answered": {
			[]string{wants(`{"a":` + askName + `}`), wants(`{"a":` + askName + `}`), wants(`{"a":` + askName + `,"b":` + askRoots + `}`), task("working", ""), done}, "ok", "fine",
			[]string{"tools/call", "tasks/get", `tasks/update {"a":` + ann + `}`, "tasks/get", "tasks/get", `tasks/update {"b":` + home + `}`, "tasks/get", "tasks/get"},
		},
		"its failure is the call's": {
			[]string{task("failed", `"error":{"code":-32603,"message":"out of paper"}`)}, "tool_error", "out of paper",
			[]string{"tools/call", "tasks/get"},
		},
		"a result that is an error": {
			[]string{task("completed", `"result":{"content":[{"type":"text","text":"bad"}],"isError":true}`)}, "tool_error", "bad",
			[]string{"tools/call", "tasks/get"},
		},
		"the server cancels it": {
			[]string{task("cancelled", `"statusMessage":"no time"`)}, "tool_error", "the server has cancelled the task that carried out the call: no time",
			[]string{"tools/call", "tasks/get"},
		},
		"the server forgets it": {
			[]string{`?{"code":-32602,"message":"no such task"}`}, "tool_error", "no longer reports its state: no such task",
			[]string{"tools/call", "tasks/get", "tasks/cancel"},
		},
		"connections break": {
			[]string{"!", "HTTP 503", task("working", ""), "!", done}, "ok", "fine",
			[]string{"tools/call", "tasks/get", "tasks/get", "tasks/get", "tasks/get", "tasks/get"},
		},
		"the server lets nobody ask": {[]string{"HTTP 401"}, "transport", "HTTP 401", []string{"tools/call", "tasks/get", "tasks/cancel"}},

		"another task":                    {[]string{strings.Replace(done, "t 1", "t 2", 1)}, "protocol", "answers with another", nil},
		"no task":                         {[]string{`{}`}, "protocol", "answers with another", nil},
		"an unknown status":               {[]string{task("paused", "")}, "protocol", `status "\"paused\""`, nil},
		"no result":                       {[]string{task("completed", "")}, "protocol", "no complete result", nil},
		"a result that is none yet":       {[]string{task("completed", `"result":{"resultType":"input_required"}`)}, "protocol", "no complete result", nil},
		"no error":                        {[]string{task("failed", "")}, "protocol", "has no error", nil},
		"no requests":                     {[]string{task("input_required", "")}, "protocol", "does not name the input", nil},
		"requests that are not an object": {[]string{wants(`[]`)}, "protocol", "not an object", nil},
		"a request of its own":            {[]string{wants(`{"a":{"method":"tools/call"}}`)}, "protocol", "which a server cannot ask of a client", nil},
		"a key for two things":            {[]string{wants(`{"a":` + askRoots + `}`), wants(`{"a":` + askName + `}`)}, "protocol", "two questions", nil},
		"requests without end":            {without, "protocol", "more than 100 questions", nil},
		"a key that is too long":          {[]string{wants(`{"` + strings.Repeat("a", 300) + `":` + askRoots + `}`)}, "protocol", "key of more than", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := newTaskServer(tt.says...)
			e, srv := rig.Dialled(t, m)
			g, _ := rig.NewGate(t, e)
			c := rig.NewCall("s__echo", "{}")
			var tasked atomic.Int32
			c.Client = gatetest.Asked(canAll, accepts)
			gatetest.Of(&c).OnTasked = func() { tasked.Add(1) }
			res, err := g.Do(t.Context(), c)
			code, text := gate.Code(err), fmt.Sprint(err)
			if err == nil {
				text = res.Doc.At("/content/0/text").Text()
			}
			if err == nil && res.IsError {
				code = "tool_error"
			}
			if code != tt.code || !strings.Contains(text, tt.text) {
				t.Errorf("%s %s, want %s with %q", code, text, tt.code, tt.text)
			}
			if diff := cmp.Diff(tt.sent, m.SentOf()); tt.sent != nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.sent == nil && len(m.Of("tasks/cancel")) != 1 && !strings.HasPrefix(name, "no ") && !strings.HasPrefix(name, "a result") {
				t.Errorf("the task was not cancelled: %s", m.SentOf())
			}
			if tasked.Load() != 1 {
				t.Errorf("the client was told %d times of a task", tasked.Load())
			}
			m.Mu.Lock()
			m.Turns["tools/call"] = []string{fine}
			m.Mu.Unlock()
			if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
				t.Errorf("the next call: %v", err)
			}
			e.Close()
			srv.Close()
		})
	}
}

// TestModernTaskMade: what a server may answer a call by.
func TestModernTaskMade(t *testing.T) {
	tests := map[string]struct {
		discovered, made string
		code, text       string
	}{
		"a task that has ended already": {offersTasks, makes("completed"), "ok", ""},
		"a task without an id":          {offersTasks, `{"resultType":"task","status":"working"}`, "protocol", "taskId"},
		"an empty id":                   {offersTasks, `{"resultType":"task","status":"working","taskId":""}`, "protocol", "taskId"},
		"an id that is too long":        {offersTasks, `{"resultType":"task","status":"working","taskId":"` + strings.Repeat("x", 2000) + `"}`, "protocol", "taskId"},
		"an unknown status":             {offersTasks, makes("odd"), "protocol", "status"},
		"a task that was not asked for": {rig.Discovered, makes("working"), "protocol", "not declared"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := newTaskServer(task("completed", `"result":`+fine))
			m.Answers["server/discover"] = tt.discovered
			m.Turns["tools/call"] = []string{tt.made}
			e, _ := rig.Dialled(t, m)
			_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
			if gate.Code(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v, want %s with %q", err, tt.code, tt.text)
			}
		})
	}
	t.Run("a task that goes back", func(t *testing.T) {
		m := newTaskServer(task("working", ""))
		m.Turns["tools/call"] = []string{makes("completed")}
		e, _ := rig.Dialled(t, m)
		if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); gate.Code(err) != "protocol" || !strings.Contains(err.Error(), "again") {
			t.Error(err)
		}
	})
}

// TestModernTaskWords: what the requests of a call that becomes a task say of it. Tasks
// are declared for calls of tools alone, whatever the client declares.
func TestModernTaskWords(t *testing.T) {
	m := newTaskServer(task("input_required", `"inputRequests":{"a":`+askRoots+`}`), task("completed", `"result":`+fine))
	m.Answers["prompts/get"] = `{"messages":[]}`
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{{Server: "s", URL: rig.URLOf(t, m), Tools: rig.Options()}}})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, _ := rig.NewGate(t, f)
	asker := gatetest.Asked(`{"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{"x":1},"com.example/y":{}}}`, accepts)
	for _, c := range []gate.Call{rig.NewCall("s__echo", "{}"), {Action: gate.GetPrompt, Name: "s__p", Who: gate.Local()}} {
		c.Client = asker
		if _, err := g.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	with := `{"roots":{},"extensions":{"com.example/y":{},"io.modelcontextprotocol/tasks":{}}}`
	for method, want := range map[string]struct{ name, capabilities string }{
		"tools/call":   {"echo", with},
		"tasks/get":    {"t 1", with},
		"tasks/update": {"t 1", with},
		"prompts/get":  {"p", `{"roots":{},"extensions":{"com.example/y":{}}}`},
		"tools/list":   {"", `{"extensions":{"io.modelcontextprotocol/enterprise-managed-authorization":{},"io.modelcontextprotocol/oauth-client-credentials":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`},
	} {
		all := m.Of(method)
		if len(all) == 0 {
			t.Errorf("no %s", method)
			continue
		}
		one := all[0]
		if one.Header.Get("Mcp-Method") != method || one.Header.Get("Mcp-Name") != want.name {
			t.Errorf("%s: headers %q, %q", method, one.Header.Get("Mcp-Method"), one.Header.Get("Mcp-Name"))
		}
		if got := one.Params.At("/_meta").Get("io.modelcontextprotocol/clientCapabilities").String(); got != want.capabilities {
			t.Errorf("%s: capabilities %s, want %s", method, got, want.capabilities)
		}
		if strings.HasPrefix(method, "tasks/") && one.Params.Get("taskId").Text() != "t 1" {
			t.Errorf("%s of %s", method, one.Params.Get("taskId"))
		}
	}
}

// TestModernTaskBrokenOff: a task that is no longer waited for is cancelled.
func TestModernTaskBrokenOff(t *testing.T) {
	unraced.Long(t)
	wants := task("input_required", `"inputRequests":{"a":`+askName+`}`)
	tests := map[string]struct {
		says    string
		timeout time.Duration
		peer    gate.Client
		leaves  bool
		code    string
	}{
		"the client goes":                {task("working", ""), time.Minute, nil, true, "cancelled"},
		"the server is silent":           {"-", 2 * time.Second, nil, false, "timeout"},
		"the connection does not return": {"HTTP 503", 2 * time.Second, nil, false, "timeout"},
		"nobody can be asked":            {wants, time.Minute, nil, false, "refused_authorize"},
		"the client does not answer":     {wants, time.Minute, gatetest.Asked(canAll, refuses), false, "protocol"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timelimit.Grow(t, tt.timeout, func(limit time.Duration) error {
				m := newTaskServer(tt.says)
				e, srv := rig.Dialled(t, m, func(c *options.Endpoint) { c.CallTimeout = limit })
				defer srv.Close()
				defer e.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				g, _ := rig.NewGate(t, e)
				c := rig.NewCall("s__echo", "{}")
				c.Client = tt.peer
				if tt.leaves {
					gatetest.Of(&c).OnTasked = func() { time.AfterFunc(50*time.Millisecond, cancel) }
				}
				if _, err := g.Do(ctx, c); gate.Code(err) != tt.code {
					return fmt.Errorf("error %w, want %s", err, tt.code)
				}
				if calls, cancels := len(m.Of("tools/call")), len(m.Of("tasks/cancel")); calls != 1 || cancels != 1 {
					return fmt.Errorf("%d calls, %d cancellations: %s", calls, cancels, m.SentOf())
				}
				return nil
			})
		})
	}
}

func refuses(context.Context, gate.Action, gate.Doc) (gate.Doc, error) {
	return gate.Doc{}, fmt.Errorf("no")
}

// TestModernTaskTakesBack: a question that the server takes back is taken back from the
// client, and the task goes on; questions are asked at once, and answered one by one.
func TestModernTaskTakesBack(t *testing.T) {
	both := task("input_required", `"inputRequests":{"a":`+askName+`,"b":`+askRoots+`}`)
	m := newTaskServer(both)
	e, _ := rig.Dialled(t, m)
	g, _ := rig.NewGate(t, e)
	c := rig.NewCall("s__echo", "{}")
	var asked sync.WaitGroup
	asked.Add(2)
	takenBack := make(chan bool, 1)
	c.Client = gatetest.Asked(canAll, func(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
		asked.Done()
		asked.Wait() // which neither alone gets past
		if method == actions.ListRoots {
			return accepts(ctx, method, params)
		}
		rig.Within(t, "while one waits, the other is answered", func() bool { return len(m.Of("tasks/update")) > 0 })
		m.Mu.Lock()
		m.Turns["tasks/get"] = []string{task("working", ""), task("completed", `"result":`+fine)}
		m.Mu.Unlock()
		<-ctx.Done()
		takenBack <- true
		return gate.Doc{}, ctx.Err()
	})
	if res, err := g.Do(t.Context(), c); err != nil || res.IsError {
		t.Errorf("%s, %v", res.Doc, err)
	}
	if len(takenBack) != 1 {
		t.Error("the client is still asked")
	}
}

// TestModernTaskTakesNoAnswer: an answer that comes too late is no failure of a task that
// has ended, but is one of a task that goes on.
func TestModernTaskTakesNoAnswer(t *testing.T) {
	for then, failed := range map[string]bool{task("completed", `"result":`+fine): false, task("working", ""): true} {
		m := newTaskServer(task("input_required", `"inputRequests":{"a":`+askRoots+`}`), then)
		m.Answers["tasks/update"] = `?{"code":-32602,"message":"too late"}`
		e, _ := rig.Dialled(t, m)
		g, _ := rig.NewGate(t, e)
		c := rig.NewCall("s__echo", "{}")
		c.Client = gatetest.Asked(canAll, accepts)
		if res, err := g.Do(t.Context(), c); err != nil || res.IsError != failed || failed != strings.Contains(res.Doc.String(), "too late") {
			t.Errorf("then %s: %s, %v", then, res.Doc, err)
		}
	}
}

// TestModernTaskOutlivesConnection: a server that is away for a while is asked for its task when it
// is back, unless what it then offers is not approved.
func TestModernTaskOutlivesConnection(t *testing.T) {
	unraced.Long(t)
	for name, approved := range map[string]bool{"the same server": true, "another server": false} {
		t.Run(name, func(t *testing.T) {
			m := newTaskServer(task("working", ""))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			serve := func(l net.Listener) *httptest.Server {
				srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: m}}
				srv.Start()
				return srv
			}
			srv := serve(l)
			e := rig.Ready(t, options.Endpoint{Server: "s", URL: srv.URL, Tools: rig.Options()})
			var other atomic.Bool
			g, err := gate.New(gate.Parts{
				Upstream: e, Authorizer: rig.AuthorizerFunc(rig.Allow), Sessions: rig.Sessions{}, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: new(rig.Records),
				Pins: pinsFunc(func(*gate.Tool) error {
					if other.Load() {
						return fmt.Errorf("not approved")
					}
					return nil
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			c := rig.NewCall("s__echo", "{}")
			back := make(chan *httptest.Server, 1)
			gatetest.Of(&c).OnTasked = func() {
				go func() {
					srv.CloseClientConnections()
					srv.Close()
					rig.Within(t, "the server is missed", func() bool { return e.Phase() != status.Ready })
					m.Mu.Lock()
					m.Turns["tasks/get"] = []string{task("completed", `"result":`+fine)}
					m.Mu.Unlock()
					other.Store(!approved)
					if l, err := rig.Listen(l.Addr().String()); err != nil {
						t.Error(err)
						close(back)
					} else {
						back <- serve(l)
					}
				}()
			}
			res, err := g.Do(t.Context(), c)
			if srv := <-back; srv != nil {
				srv.Close()
			}
			if want := map[bool]string{true: "ok", false: "refused_pin"}[approved]; gate.Code(err) != want {
				t.Errorf("%s, %v, want %s", res.Doc, err, want)
			}
			if n := len(m.Of("tools/call")); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

type pinsFunc func(*gate.Tool) error

func (f pinsFunc) Check(t *gate.Tool) error { return f(t) }

// TestModernTaskOfClosedEndpoint: a task does not hold up the end of its endpoint.
func TestModernTaskOfClosedEndpoint(t *testing.T) {
	e, _ := rig.Dialled(t, newTaskServer(task("working", "")))
	g, _ := rig.NewGate(t, e)
	c := rig.NewCall("s__echo", "{}")
	gatetest.Of(&c).OnTasked = func() { go e.Close() }
	if _, err := g.Do(t.Context(), c); gate.Code(err) != "transport" && gate.Code(err) != "not_connected" {
		t.Errorf("error %v", err)
	}
}

// TestModernTaskTriesCircuit: a task is an answer: a circuit that its call has tried is
// closed while the task goes on.
func TestModernTaskTriesCircuit(t *testing.T) {
	unraced.Long(t)
	m := newTaskServer(task("working", ""))
	m.Turns["tools/call"] = []string{"!", "!", "!", "!", "!", makes("working")}
	e, _ := rig.Dialled(t, m)
	for range 5 {
		_, _ = rig.Do(t.Context(), t, e, "s__echo", "{}")
	}
	if e.Status().Circuit != status.CircuitOpen {
		t.Fatalf("circuit %q", e.Status().Circuit)
	}
	rig.Within(t, "the circuit is half open", func() bool { return e.Status().Circuit == status.CircuitHalfOpen })
	g, _ := rig.NewGate(t, e)
	c := rig.NewCall("s__echo", "{}")
	ctx, cancel := context.WithCancel(t.Context())
	gatetest.Of(&c).OnTasked = func() {
		if got := e.Status().Circuit; got != "" {
			t.Errorf("circuit %q while the task goes on", got)
		}
		cancel()
	}
	_, _ = g.Do(ctx, c)
	if ctx.Err() == nil {
		t.Error("no task")
		cancel()
	}
}
