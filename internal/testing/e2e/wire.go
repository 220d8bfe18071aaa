//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Hang answers no request. It sees the end of one only if it has read it.
func Hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// Code returns the code of a refusal or of a fault; "" of what succeeded.
func Code(a Answered) string {
	code, _ := a.Refusal()
	return code
}

// Peak is the line of /proc/PID/status with the most memory that a process has had, in kB.
var Peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// A Slow is a server whose call begins and then waits to be let go.
type Slow struct {
	Stub
	Began, Release chan struct{}
}

// NewSlow returns a server with the one tool slow.
func NewSlow() *Slow {
	s := &Slow{Began: make(chan struct{}, 9), Release: make(chan struct{})}
	s.Tools = `[{"name":"slow","inputSchema":{"type":"object"}}]`
	s.Answer = func(w http.ResponseWriter, r *http.Request, c StubCall) {
		s.Began <- struct{}{}
		select {
		case <-s.Release:
			AnswerFine(w, r, c)
		case <-r.Context().Done():
		}
	}
	return s
}

// JSONString writes a string as most servers do: markup is not escaped.
func JSONString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string
	}
	return strings.TrimSpace(b.String())
}

// A Stub is an MCP server over streamable HTTP that is written out byte by
// byte, so that it can count and lie. It answers each message with one message.
type Stub struct {
	Tools  string // the array of its tools, JSON
	Answer func(w http.ResponseWriter, r *http.Request, c StubCall)

	Mu   sync.Mutex
	Seen []StubCall
}

// A StubCall is a call as the stub saw it.
type StubCall struct {
	ID     json.RawMessage
	Params struct {
		Name      string
		Arguments json.RawMessage
	}
}

// Start serves the stub and returns its URL.
func (s *Stub) Start(t testing.TB) string {
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	return ts.URL + "/mcp"
}

func (s *Stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		StubCall
		Method string
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch m.Method {
	case "initialize":
		Result(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}`)
	case "ping":
		Result(w, m.ID, `{}`)
	case "tools/list":
		Result(w, m.ID, `{"tools":`+s.Tools+`}`)
	case "tools/call":
		s.Mu.Lock()
		s.Seen = append(s.Seen, m.StubCall)
		s.Mu.Unlock()
		s.Answer(w, r, m.StubCall)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// Result answers a request with a result, whose bytes are sent as they are.
func Result(w http.ResponseWriter, id json.RawMessage, raw string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, raw)
}

// Calls returns the arguments of the calls of a tool that the stub has seen.
func (s *Stub) Calls(tool string) []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var all []string
	for _, c := range s.Seen {
		if c.Params.Name == tool {
			all = append(all, string(c.Params.Arguments))
		}
	}
	return all
}

// Fine is a result whose text is "fine".
const Fine = `{"content":[{"type":"text","text":"fine"}]}`

// AnswerFine is the answer of a [Stub] that always succeeds.
func AnswerFine(w http.ResponseWriter, _ *http.Request, c StubCall) { Result(w, c.ID, Fine) }

// A Wire is an MCP client that shows every byte of an answer.
type Wire struct {
	URL, Session string
	Key          string // "" for none
	Stateless    bool   // speaks revision 2026-07-28
	Last         int
}

// An Answered is the answer to a request.
type Answered struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// DialWire opens a session of revision 2025-11-25.
func DialWire(ctx context.Context, url string) (*Wire, error) {
	w := &Wire{URL: url}
	return w, w.Open(ctx)
}

// Open opens a session.
func (w *Wire) Open(ctx context.Context) error {
	h, _, err := w.Post(ctx, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`)
	if err != nil {
		return err
	}
	w.Session = h.Get("Mcp-Session-Id")
	_, _, err = w.Post(ctx, "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

// MustWire opens a session of revision 2025-11-25.
func MustWire(t testing.TB, url string) *Wire {
	t.Helper()
	w, err := DialWire(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Post sends one message and returns the one message that answers it, if any.
func (w *Wire) Post(ctx context.Context, tool, msg string) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, strings.NewReader(msg))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.Key != "" {
		r.Header.Set("Authorization", "Bearer "+w.Key)
	}
	if w.Stateless {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", tool)
	} else if w.Session != "" {
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		r.Header.Set("Mcp-Session-Id", w.Session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(b) {
		if data, ok := bytes.CutPrefix(line, []byte("data: {")); ok {
			return resp.Header, append([]byte("{"), bytes.TrimSpace(data)...), nil
		}
	}
	return resp.Header, b, nil
}

// Call calls a tool. The error is one of the connection.
func (w *Wire) Call(ctx context.Context, tool, args string) (Answered, error) {
	w.Last++
	meta := ""
	if w.Stateless {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"wire","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	_, b, err := w.Post(ctx, tool, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, w.Last, tool, args, meta))
	if err != nil {
		return Answered{}, err
	}
	var a Answered
	if err := json.Unmarshal(b, &a); err != nil {
		return Answered{}, fmt.Errorf("answer %.200q: %w", b, err)
	}
	return a, nil
}

// MustCall calls a tool and returns the answer.
func (w *Wire) MustCall(t testing.TB, tool, args string) Answered {
	t.Helper()
	a, err := w.Call(t.Context(), tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Refusal returns what a result says of a refusal, or of a fault.
func (a Answered) Refusal() (code, reason string) {
	var r struct {
		IsError bool
		Meta    struct {
			Refusal struct {
				Code     string
				RecordID string `json:"record_id"`
			} `json:"io.github.wasmgate/refusal"`
		} `json:"_meta"`
		Content []struct{ Text string }
	}
	if json.Unmarshal(a.Result, &r) != nil || !r.IsError || r.Meta.Refusal.RecordID == "" || len(r.Content) == 0 {
		return "", ""
	}
	return r.Meta.Refusal.Code, r.Content[0].Text
}
