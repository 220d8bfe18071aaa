package rig

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// Listen listens at an address that was free a moment ago, and waits while another
// program has it.
func Listen(at string) (net.Listener, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if l, err := net.Listen("tcp", at); err == nil || time.Now().After(end) {
			return l, err
		}
	}
}

// A Web is a streamable HTTP server whose answers to calls are call's.
type Web struct {
	Call func(w http.ResponseWriter, r *http.Request, id string)

	Mu      sync.Mutex
	Headers []http.Header
	Methods []string
}

// JSONServer answers calls with one JSON document.
func JSONServer(answer func(id string) string) *Web {
	return &Web{Call: func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer(id))
	}}
}

// EventServer answers calls with a stream of events.
func EventServer(stream func(w io.Writer, id string)) *Web {
	return &Web{Call: func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		stream(w, id)
	}}
}

// Asked returns the methods that it was asked, of HTTP and MCP.
func (s *Web) Asked() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(s.Methods)
}

func (s *Web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	msg, _ := gate.ParseDoc(body)
	s.Mu.Lock()
	s.Headers = append(s.Headers, r.Header)
	s.Methods = append(s.Methods, strings.TrimSpace(r.Method+" "+msg.Get("method").Text()))
	s.Mu.Unlock()
	id := msg.Get("id").String()
	w.Header().Set("Content-Type", "application/json")
	switch msg.Get("method").Text() {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "secret")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, Initialized)
	case "tools/list":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, id, EchoTool)
	case "tools/call":
		s.Call(w, r, id)
	case "":
		w.WriteHeader(http.StatusMethodNotAllowed) // GET and DELETE
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// Dialled returns an endpoint connected to h.
func Dialled(t testing.TB, h http.Handler, change ...func(*options.Endpoint)) (*upstream.Endpoint, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg := options.Endpoint{Server: "s", URL: srv.URL, Tools: Options()}
	for _, c := range change {
		c(&cfg)
	}
	e := Ready(t, cfg)
	return e, srv
}

// Odd is a result in which a reader that is not careful loses something.
const Odd = `{"content":[{"type":"video","z":1,"a":2}],"big":12345678901234567890,"one":1.0,"isError":false,"html":"<&>"}`
