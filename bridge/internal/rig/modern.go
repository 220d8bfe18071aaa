package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// A Modern server speaks MCP 2026-07-28 over HTTP. It gives the answers below, and keeps what it
// was sent.
type Modern struct {
	Answers map[string]string // result by method; "?" begins an error, "HTTP 503" is that status, "!" hangs up, "-" never comes
	Answer  func(msg gate.Doc) string

	Mu    sync.Mutex
	seen  []Sent
	Turns map[string][]string // results by method that go before answers, one after the other; the last one stands
}

// Sent is a message that a server was sent.
type Sent struct {
	method string
	Header http.Header
	Params gate.Doc
}

// NewModern returns a server with other answers than the usual ones.
func NewModern(answers map[string]string) *Modern {
	m := &Modern{Answers: map[string]string{
		"server/discover": Discovered, "tools/list": `{"tools":[` + EchoTool + `],"ttlMs":5}`, "tools/call": `{"content":[]}`,
		"prompts/list":   `{"prompts":[{"name":"p"}]}`,
		"resources/list": `{"resources":[{"uri":"file:///ä","name":"r"}]}`, "resources/templates/list": `{"resourceTemplates":[]}`,
	}}
	for k, v := range answers {
		m.Answers[k] = v
	}
	return m
}

func (m *Modern) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	msg, err := gate.ParseDoc(body)
	if r.Method != http.MethodPost || err != nil {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	method := msg.Get("method").Text()
	m.Mu.Lock()
	m.seen = append(m.seen, Sent{method, r.Header, msg.Get("params")})
	answer, known := m.Answers[method]
	if turns := m.Turns[method]; len(turns) > 0 {
		answer, known = turns[0], true
		m.Turns[method] = turns[min(1, len(turns)-1):]
	}
	m.Mu.Unlock()
	if m.Answer != nil && (method == "tools/call" || method == "prompts/get" || method == "resources/read") {
		answer, known = m.Answer(msg), true
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", "none") // which clients pass over
	if !known {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, msg.Get("id"))
		return
	}
	WriteAnswer(w, r, msg.Get("id"), answer)
}

// WriteAnswer writes an answer in the words of [Modern].
func WriteAnswer(w http.ResponseWriter, r *http.Request, id gate.Doc, answer string) {
	switch {
	case answer == "!":
		panic(http.ErrAbortHandler)
	case answer == "-":
		<-r.Context().Done()
	case strings.HasPrefix(answer, "HTTP "):
		var status int
		_, _ = fmt.Sscanf(answer, "HTTP %d", &status)
		w.Header().Set("Content-Type", "text/plain")
		http.Error(w, "no", status)
	case strings.HasPrefix(answer, "?"):
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, answer[1:])
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, answer)
	}
}

// Of returns the messages of a method that were sent.
func (m *Modern) Of(method string) (all []Sent) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for _, one := range m.seen {
		if one.method == method {
			all = append(all, one)
		}
	}
	return all
}

// Methods returns the methods of what it was sent.
func (m *Modern) Methods() (all []string) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for _, one := range m.seen {
		all = append(all, one.method)
	}
	return all
}

// SentOf returns the methods of requests about tasks, and of calls, with what was answered.
func (m *Modern) SentOf() (all []string) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for _, one := range m.seen {
		if strings.HasPrefix(one.method, "tasks/") || one.method == "tools/call" {
			all = append(all, strings.TrimSpace(one.method+" "+one.Params.Get("inputResponses").String()))
		}
	}
	return all
}

// Discovered is what a server of 2026-07-28 says of itself.
const Discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"instructions":"be kind"}`

// URLOf serves h, and returns where.
func URLOf(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// AddTool adds a tool that does nothing.
func AddTool(s *mcp.Server, name string) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
}
