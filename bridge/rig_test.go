package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/schema"
	"github.com/wasmgate/wasmgate/gate"
)

// Collaborators of a gate that stand in no way.

type authorizerFunc func(gate.Query) gate.Decision

func (f authorizerFunc) Authorize(_ context.Context, q gate.Query) (gate.Decision, error) {
	return f(q), nil
}

func (f authorizerFunc) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	visible := make([]bool, len(tools))
	for i, t := range tools {
		visible[i] = !f(gate.Query{Tool: t}).Hidden
	}
	return visible, nil
}

func allow(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Allow} }

type sessions struct{}

func (sessions) View(_ context.Context, k gate.SessionKey) (gate.Session, error) {
	return gate.Session{Key: k}, nil
}
func (sessions) Admit(_ context.Context, s gate.Session, _ *gate.Call, _ gate.Labels) (gate.Session, error) {
	return s, nil
}
func (sessions) Learn(context.Context, gate.SessionKey, gate.Lesson) error {
	return nil
}

type sanitizerFunc func(text string) (string, []gate.Finding)

func (f sanitizerFunc) Sanitize(t gate.Text) (string, []gate.Finding) { return f(t.Text) }

func unchanged(text string) (string, []gate.Finding) { return text, nil }

// records keeps what is recorded.
type records struct {
	mu  sync.Mutex
	all []gate.Record
}

func (r *records) Record(_ context.Context, rec *gate.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, *rec)
	return nil
}

// done returns the calls that have ended, as "name code".
func (r *records) done() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, rec := range r.all {
		if rec.Event == gate.Done {
			out = append(out, rec.Call.Name+" "+rec.Code)
		}
	}
	return out
}

func newGate(t testing.TB, up gate.Upstream) (*gate.Gate, *records) {
	t.Helper()
	r := new(records)
	g, err := gate.New(gate.Parts{
		Upstream: up, Authorizer: authorizerFunc(allow), Sessions: sessions{},
		Sanitizer: sanitizerFunc(unchanged), Recorder: r,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, r
}

// do calls a tool of up through a gate.
func do(ctx context.Context, t testing.TB, up gate.Upstream, name, args string) (gate.Result, error) {
	t.Helper()
	g, _ := newGate(t, up)
	return g.Do(ctx, newCall(name, args))
}

func newCall(name, args string) gate.Call {
	return gate.Call{Action: gate.CallTool, Name: name, Args: gate.MustDoc(args), Who: gate.Local()}
}

func options() bridge.ToolOptions {
	return bridge.ToolOptions{Sanitizer: sanitizerFunc(unchanged), Schemas: schema.NewCompiler()}
}

// A script is an MCP server in this process that answers as it is told.
type script struct {
	answers map[string]string // result by method; "-" never comes, "!" ends the connection
	tools   atomic.Pointer[string]

	mu    sync.Mutex
	seen  []string // methods, and requestId of cancellations
	conns []mcp.Connection
	dials int
	fail  error // of the next dials
}

const (
	initialized = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
	echoTool    = `{"name":"echo","inputSchema":{"type":"object"}}`
)

func newScript(answers map[string]string) *script {
	s := &script{answers: map[string]string{"initialize": initialized, "tools/call": `{"content":[]}`}}
	for k, v := range answers {
		s.answers[k] = v
	}
	s.list(echoTool)
	return s
}

func (s *script) list(tools string) {
	all := `{"tools":[` + tools + `]}`
	s.tools.Store(&all)
}

func (s *script) config(server string) bridge.EndpointConfig {
	return bridge.EndpointConfig{Server: server, Dial: s.dial, Tools: options()}
}

func (s *script) dial() (mcp.Transport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	s.seen = append(s.seen, "dial")
	if s.fail != nil {
		return nil, s.fail
	}
	a, b := mcp.NewInMemoryTransports()
	c, err := a.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	s.conns = append(s.conns, c)
	go s.serve(c)
	return b, nil
}

// answer changes what a method is answered with.
func (s *script) answer(method, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[method] = result
}

func (s *script) answerTo(method string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, ok := s.answers[method]
	return result, ok
}

// cut ends the connections; later dials fail with err.
func (s *script) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

func (s *script) serve(c mcp.Connection) {
	defer c.Close()
	for {
		m, err := c.Read(context.Background())
		if err != nil {
			return
		}
		req, ok := m.(*jsonrpc.Request)
		if !ok {
			s.note(fmt.Sprintf("answer %v", m.(*jsonrpc.Response).ID.Raw()))
			continue
		}
		if req.Method == "notifications/cancelled" {
			var p struct{ RequestID int }
			_ = json.Unmarshal(req.Params, &p)
			s.note(fmt.Sprintf("%s %d", req.Method, p.RequestID))
		} else {
			s.note(req.Method)
		}
		if !req.IsCall() {
			continue
		}
		answer, ok := s.answerTo(req.Method)
		if req.Method == "tools/list" && !ok {
			answer, ok = *s.tools.Load(), true
		}
		resp := &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(answer)}
		switch {
		case answer == "-":
			continue
		case answer == "!":
			return
		case !ok:
			resp.Result, resp.Error = nil, &jsonrpc.Error{Code: -32601, Message: "no such method"}
		case answer[0] == '?':
			resp.Result, resp.Error = nil, &jsonrpc.Error{Code: -32000, Message: answer[1:]}
		}
		if c.Write(context.Background(), resp) != nil {
			return
		}
	}
}

// tell sends a message to all who are connected.
func (s *script) tell(m jsonrpc.Message) {
	s.mu.Lock()
	conns := append([]mcp.Connection(nil), s.conns...)
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Write(context.Background(), m) // some may have gone
	}
}

func (s *script) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

func (s *script) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, w := range s.seen {
		if w == what {
			n++
		}
	}
	return n
}

func newEndpoint(t testing.TB, cfg bridge.EndpointConfig) *bridge.Endpoint {
	t.Helper()
	e, err := bridge.NewEndpoint(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// ready returns an endpoint that is connected.
func ready(t testing.TB, cfg bridge.EndpointConfig) *bridge.Endpoint {
	t.Helper()
	e := newEndpoint(t, cfg)
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// nothing is a message that answers request id with an empty result.
func nothing(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}` }

// child is the configuration of a lying server on stdio.
func child(how string) bridge.EndpointConfig {
	return bridge.EndpointConfig{
		Server: "liar", Command: os.Args[0], Env: []string{liarEnv + "=" + how}, Tools: options(),
	}
}

// kind is the kind of the fault in err, or what else is there.
func kind(err error) string {
	var f *bridge.Fault
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &f):
		return string(f.Kind)
	default:
		return gate.Code(err)
	}
}
