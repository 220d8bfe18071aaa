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
	"strings"
	"sync"
	"testing"
)

// A stub is an MCP server over streamable HTTP that is written out byte by
// byte, so that it can count and lie. It answers each message with one message.
type stub struct {
	tools  string // the array of its tools, JSON
	answer func(w http.ResponseWriter, r *http.Request, c stubCall)

	mu   sync.Mutex
	seen []stubCall
}

// A stubCall is a call as the stub saw it.
type stubCall struct {
	ID     json.RawMessage
	Params struct {
		Name      string
		Arguments json.RawMessage
	}
}

// start serves the stub and returns its URL.
func (s *stub) start(t testing.TB) string {
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	return ts.URL + "/mcp"
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		stubCall
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
		result(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}`)
	case "tools/list":
		result(w, m.ID, `{"tools":`+s.tools+`}`)
	case "tools/call":
		s.mu.Lock()
		s.seen = append(s.seen, m.stubCall)
		s.mu.Unlock()
		s.answer(w, r, m.stubCall)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// result answers a request with a result, whose bytes are sent as they are.
func result(w http.ResponseWriter, id json.RawMessage, raw string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, raw)
}

// calls returns the arguments of the calls of a tool that the stub has seen.
func (s *stub) calls(tool string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, c := range s.seen {
		if c.Params.Name == tool {
			all = append(all, string(c.Params.Arguments))
		}
	}
	return all
}

const fine = `{"content":[{"type":"text","text":"fine"}]}`

func answerFine(w http.ResponseWriter, _ *http.Request, c stubCall) { result(w, c.ID, fine) }

// A wire is an MCP client that shows every byte of an answer.
type wire struct {
	url, session string
	key          string // "" for none
	stateless    bool   // speaks revision 2026-07-28
	last         int
}

// An answered is the answer to a request.
type answered struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// dialWire opens a session of revision 2025-11-25.
func dialWire(ctx context.Context, url string) (*wire, error) {
	w := &wire{url: url}
	return w, w.open(ctx)
}

// open opens a session.
func (w *wire) open(ctx context.Context) error {
	h, _, err := w.post(ctx, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`)
	if err != nil {
		return err
	}
	w.session = h.Get("Mcp-Session-Id")
	_, _, err = w.post(ctx, "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

func mustWire(t testing.TB, url string) *wire {
	t.Helper()
	w, err := dialWire(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// post sends one message and returns the one message that answers it, if any.
func (w *wire) post(ctx context.Context, tool, msg string) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(msg))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.key != "" {
		r.Header.Set("Authorization", "Bearer "+w.key)
	}
	if w.stateless {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", tool)
	} else if w.session != "" {
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		r.Header.Set("Mcp-Session-Id", w.session)
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

// call calls a tool. The error is one of the connection.
func (w *wire) call(ctx context.Context, tool, args string) (answered, error) {
	w.last++
	meta := ""
	if w.stateless {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"wire","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	_, b, err := w.post(ctx, tool, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, w.last, tool, args, meta))
	if err != nil {
		return answered{}, err
	}
	var a answered
	if err := json.Unmarshal(b, &a); err != nil {
		return answered{}, fmt.Errorf("answer %.200q: %w", b, err)
	}
	return a, nil
}

// mustCall calls a tool and returns the answer.
func (w *wire) mustCall(t testing.TB, tool, args string) answered {
	t.Helper()
	a, err := w.call(t.Context(), tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// refusal returns what a result says of a refusal, or of a fault.
func (a answered) refusal() (code, reason string) {
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
