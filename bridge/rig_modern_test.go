package bridge_test

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

// A modern server speaks MCP 2026-07-28 over HTTP, as it is told, and keeps what it was
// sent.
type modern struct {
	answers map[string]string // result by method; "?" begins an error, "HTTP 503" is that status, "!" hangs up, "-" never comes
	answer  func(msg gate.Doc) string

	mu    sync.Mutex
	seen  []sent
	turns map[string][]string // results by method that go before answers, one after the other; the last one stands
}

type sent struct {
	method string
	header http.Header
	params gate.Doc
}

func newModern(answers map[string]string) *modern {
	m := &modern{answers: map[string]string{
		"server/discover": discovered, "tools/list": `{"tools":[` + echoTool + `],"ttlMs":5}`, "tools/call": `{"content":[]}`,
		"prompts/list":   `{"prompts":[{"name":"p"}]}`,
		"resources/list": `{"resources":[{"uri":"file:///ä","name":"r"}]}`, "resources/templates/list": `{"resourceTemplates":[]}`,
	}}
	for k, v := range answers {
		m.answers[k] = v
	}
	return m
}

func (m *modern) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	msg, err := gate.ParseDoc(body)
	if r.Method != http.MethodPost || err != nil {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	method := msg.Get("method").Text()
	m.mu.Lock()
	m.seen = append(m.seen, sent{method, r.Header, msg.Get("params")})
	answer, known := m.answers[method]
	if turns := m.turns[method]; len(turns) > 0 {
		answer, known = turns[0], true
		m.turns[method] = turns[min(1, len(turns)-1):]
	}
	m.mu.Unlock()
	if m.answer != nil && (method == "tools/call" || method == "prompts/get" || method == "resources/read") {
		answer, known = m.answer(msg), true
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", "none") // which clients pass over
	if !known {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, msg.Get("id"))
		return
	}
	writeAnswer(w, r, msg.Get("id"), answer)
}

// writeAnswer writes an answer in the words of [modern].
func writeAnswer(w http.ResponseWriter, r *http.Request, id gate.Doc, answer string) {
	switch {
	case answer == "!":
		panic(http.ErrAbortHandler)
	case answer == "-":
		<-r.Context().Done()
	case strings.HasPrefix(answer, "HTTP "):
		var status int
		fmt.Sscanf(answer, "HTTP %d", &status)
		w.Header().Set("Content-Type", "text/plain")
		http.Error(w, "no", status)
	case strings.HasPrefix(answer, "?"):
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, answer[1:])
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, answer)
	}
}

// of returns what was sent of a method.
func (m *modern) of(method string) (all []sent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.seen {
		if one.method == method {
			all = append(all, one)
		}
	}
	return all
}

func (m *modern) methods() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.seen {
		all = append(all, one.method)
	}
	return all
}

// sentOf returns the methods of requests about tasks, and of calls, with what was answered.
func (m *modern) sentOf() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.seen {
		if strings.HasPrefix(one.method, "tasks/") || one.method == "tools/call" {
			all = append(all, strings.TrimSpace(one.method+" "+one.params.Get("inputResponses").String()))
		}
	}
	return all
}

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"instructions":"be kind"}`

func urlOf(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func addTool(s *mcp.Server, name string) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
}
