package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
)

// A tasker is a server whose tool must be called as a task. It answers requests as it
// is told, in turn: of each method the last answer stands.
type tasker struct {
	declares string // of tasks, in its capabilities
	answers  map[string][]string

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
		return `{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`
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
			e := newEndpoint(t, bridge.EndpointConfig{Server: "s", Dial: tt.server.dial, Tools: options()})
			if err := e.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			res, err := do(t.Context(), t, e, "s__slow", `{"a":1}`)
			if err != nil || res.Doc.String() != tt.result {
				t.Errorf("result %s, %v", res.Doc, err)
			}
			if diff := cmp.Diff(tt.seen, tt.server.seen); diff != "" {
				t.Error(diff)
			}
			call := gate.MustDoc(tt.server.call)
			if asks := call.At("/task/ttl").Kind() == gate.Number; asks != (tt.server.declares == declared) || call.Get("arguments").String() != `{"a":1}` {
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
			s := &tasker{declares: declared, answers: map[string][]string{"tools/call": {created}, "tasks/get": {tt.get}}}
			e := newEndpoint(t, bridge.EndpointConfig{Server: "s", Dial: s.dial, Tools: options(), CallTimeout: tt.timeout})
			if err := e.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if name == "the client goes" {
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			_, err := do(ctx, t, e, "s__slow", `{}`)
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
	}
}

// A server that says in time that it goes on may take longer than the timeout.
func TestTaskExtendsItsTimeout(t *testing.T) {
	goesOn := slices.Repeat([]string{working("working")}, 30) // asked for every 50 ms at most
	s := &tasker{declares: declared, answers: map[string][]string{
		"tools/call": {created}, "tasks/get": append(goesOn, working("completed")), "tasks/result": {finished},
	}}
	const timeout = time.Second
	e := newEndpoint(t, bridge.EndpointConfig{Server: "s", Dial: s.dial, Tools: options(), CallTimeout: timeout})
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := do(t.Context(), t, e, "s__slow", `{}`); err != nil || time.Since(began) < timeout {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestTaskWithoutAnID(t *testing.T) {
	s := &tasker{declares: declared, answers: map[string][]string{"tools/call": {`{"task":{"taskId":7,"status":"working"}}`}}}
	e := newEndpoint(t, bridge.EndpointConfig{Server: "s", Dial: s.dial, Tools: options()})
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := do(t.Context(), t, e, "s__slow", `{}`); gate.Code(err) != "protocol" {
		t.Errorf("error %v", err)
	}
}

// A job's call has nobody to tell, and gives its server more time all the same if that
// says how far it is.
func TestDetachedCallAsksForProgress(t *testing.T) {
	for detached, want := range map[bool]gate.Kind{true: gate.Number, false: gate.Absent} {
		s := &tasker{declares: `{}`, answers: map[string][]string{"tools/call": {`{"content":[]}`}}}
		e := newEndpoint(t, bridge.EndpointConfig{Server: "s", Dial: s.dial, Tools: options()})
		if err := e.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		g, _ := newGate(t, e)
		c := newCall("s__slow", `{}`)
		c.Detached = detached
		if _, err := g.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got := gate.MustDoc(s.call).At("/_meta/progressToken").Kind(); got != want {
			t.Errorf("detached %v: the token is of kind %v, want %v (%s)", detached, got, want, s.call)
		}
	}
}
