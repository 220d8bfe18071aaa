package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// Collaborators of a gate that refuse nothing by themselves.

// AuthorizerFunc decides by a function, by which a tool is hidden, too.
type AuthorizerFunc func(gate.Query) gate.Decision

func (f AuthorizerFunc) Authorize(_ context.Context, q gate.Query) (gate.Decision, error) {
	return f(q), nil
}

// Offer implements [gate.Authorizer].
func (f AuthorizerFunc) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

func (f AuthorizerFunc) Visible(_ context.Context, _ *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	visible := make([]bool, len(tools))
	for i, t := range tools {
		visible[i] = !f(gate.Query{Tool: t}).Hidden
	}
	return visible, nil
}

// Allow allows everything.
func Allow(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Allow} }

// Sessions keep nothing.
type Sessions struct{}

func (Sessions) View(_ context.Context, k gate.SessionKey) (gate.Session, error) {
	return gate.Session{Key: k}, nil
}
func (Sessions) Admit(_ context.Context, s gate.Session, _ *gate.Call, _ gate.Labels) (gate.Session, error) {
	return s, nil
}
func (Sessions) Learn(context.Context, gate.SessionKey, gate.Lesson) error {
	return nil
}

// SanitizerFunc cleans texts by a function.
type SanitizerFunc func(text string) (string, []gate.Finding)

func (f SanitizerFunc) Sanitize(t gate.Text) (string, []gate.Finding) { return f(t.Text) }

// Unchanged leaves a text as it is.
func Unchanged(text string) (string, []gate.Finding) { return text, nil }

// Records keeps what is recorded.
type Records struct {
	Mu  sync.Mutex
	All []gate.Record
}

func (r *Records) Record(_ context.Context, rec *gate.Record) error {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.All = append(r.All, *rec)
	return nil
}

// List returns what has been recorded so far.
func (r *Records) List() []gate.Record {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return slices.Clone(r.All)
}

// Done returns the calls that have ended, as "name code".
func (r *Records) Done() []string {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	var out []string
	for _, rec := range r.All {
		if rec.Event == gate.Done {
			out = append(out, rec.Call.Name+" "+rec.Code)
		}
	}
	return out
}

// NewGate returns a gate in front of up that allows everything, and its records.
func NewGate(t testing.TB, up gate.Upstream) (*gate.Gate, *Records) {
	t.Helper()
	r := new(Records)
	g, err := gate.New(gate.Parts{
		Upstream: up, Authorizer: AuthorizerFunc(Allow), Sessions: Sessions{},
		Sanitizer: SanitizerFunc(Unchanged), Recorder: r,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, r
}

// Do calls a tool of up through a gate.
func Do(ctx context.Context, t testing.TB, up gate.Upstream, name, args string) (gate.Result, error) {
	t.Helper()
	g, _ := NewGate(t, up)
	return g.Do(ctx, NewCall(name, args))
}

// NewCall returns a call of the local principal.
func NewCall(name, args string) gate.Call {
	return gate.Call{Action: gate.CallTool, Name: name, Args: gate.MustDoc(args), Who: gate.Local()}
}

// Options change nothing.
func Options() options.Tools {
	return options.Tools{Sanitizer: SanitizerFunc(Unchanged)}
}

// A Script is an MCP server in this process that gives the answers that a test sets.
type Script struct {
	answers map[string]string // result by method; "-" never comes, "!" ends the connection
	tools   atomic.Pointer[string]

	Mu    sync.Mutex
	Seen  []string // methods, and requestId of cancellations
	conns []mcp.Connection
	Dials int
	fail  error               // of the next dials
	pages map[string][]string // see [Script.Pages]
}

const (
	// Initialized answers initialize, and EchoTool is the tool that every script has.
	Initialized = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
	EchoTool    = `{"name":"echo","inputSchema":{"type":"object"}}`
)

// NewScript returns a script with other answers than the usual ones.
func NewScript(answers map[string]string) *Script {
	s := &Script{answers: map[string]string{"initialize": Initialized, "tools/call": `{"content":[]}`}}
	for k, v := range answers {
		s.answers[k] = v
	}
	s.List(EchoTool)
	return s
}

// List says what tools it lists.
func (s *Script) List(tools string) {
	all := `{"tools":[` + tools + `]}`
	s.tools.Store(&all)
}

// Config returns how an endpoint reaches it.
func (s *Script) Config(server string) options.Endpoint {
	return options.Endpoint{Server: server, Dial: s.Dial, Tools: Options()}
}

// Dial connects.
func (s *Script) Dial() (mcp.Transport, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Dials++
	s.Seen = append(s.Seen, "dial")
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

// Answer changes what a method is answered with.
func (s *Script) Answer(method, result string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.answers[method] = result
}

// Pages has the requests of a method answered one after the other; the last answer stays.
func (s *Script) Pages(method string, results ...string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.pages = map[string][]string{method: results}
}

func (s *Script) answerTo(method string) (string, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if pages := s.pages[method]; len(pages) > 0 {
		if len(pages) > 1 {
			s.pages[method] = pages[1:]
		}
		return pages[0], true
	}
	result, ok := s.answers[method]
	return result, ok
}

// Cut ends the connections; later dials fail with err.
func (s *Script) Cut(err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.fail = err
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

func (s *Script) serve(c mcp.Connection) {
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

// Tell sends a message to all who are connected.
func (s *Script) Tell(m jsonrpc.Message) {
	s.Mu.Lock()
	conns := append([]mcp.Connection(nil), s.conns...)
	s.Mu.Unlock()
	for _, c := range conns {
		_ = c.Write(context.Background(), m) // some may have gone
	}
}

func (s *Script) note(what string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Seen = append(s.Seen, what)
}

// Count returns how often it has seen something.
func (s *Script) Count(what string) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	n := 0
	for _, w := range s.Seen {
		if w == what {
			n++
		}
	}
	return n
}

// NewEndpoint returns an endpoint that is closed with the test.
func NewEndpoint(t testing.TB, cfg options.Endpoint) *upstream.Endpoint {
	t.Helper()
	e, err := upstream.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// Ready returns an endpoint that is connected.
func Ready(t testing.TB, cfg options.Endpoint) *upstream.Endpoint {
	t.Helper()
	e := NewEndpoint(t, cfg)
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// Nothing is a message that answers request id with an empty result.
func Nothing(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}` }

// Child is the configuration of a lying server on stdio.
func Child(how string) options.Endpoint {
	return options.Endpoint{
		Server: "liar", Command: os.Args[0], Env: []string{liarEnv + "=" + how}, Tools: Options(),
	}
}

// Kind is the kind of the fault in err, or what else is there.
func Kind(err error) string {
	var f *fault.Fault
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &f):
		return string(f.Kind)
	default:
		return gate.Code(err)
	}
}
