package bridge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/gate"
)

// A web is a streamable HTTP server whose answers to calls are call's.
type web struct {
	call func(w http.ResponseWriter, r *http.Request, id string)

	mu      sync.Mutex
	headers []http.Header
	methods []string
}

// jsonServer answers calls with one JSON document.
func jsonServer(answer func(id string) string) *web {
	return &web{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer(id))
	}}
}

// eventServer answers calls with a stream of events.
func eventServer(stream func(w io.Writer, id string)) *web {
	return &web{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		stream(w, id)
	}}
}

func (s *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	msg, _ := gate.ParseDoc(body)
	s.mu.Lock()
	s.headers = append(s.headers, r.Header)
	s.methods = append(s.methods, strings.TrimSpace(r.Method+" "+msg.Get("method").Text()))
	s.mu.Unlock()
	id := msg.Get("id").String()
	w.Header().Set("Content-Type", "application/json")
	switch msg.Get("method").Text() {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "secret")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, initialized)
	case "tools/list":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, id, echoTool)
	case "tools/call":
		s.call(w, r, id)
	case "":
		w.WriteHeader(http.StatusMethodNotAllowed) // GET and DELETE
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// dialled returns an endpoint connected to h.
func dialled(t testing.TB, h http.Handler, change ...func(*bridge.EndpointConfig)) (*bridge.Endpoint, *httptest.Server) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg := bridge.EndpointConfig{Server: "s", URL: srv.URL, Tools: options()}
	for _, c := range change {
		c(&cfg)
	}
	e := ready(t, cfg)
	return e, srv
}

const odd = `{"content":[{"type":"video","z":1,"a":2}],"big":12345678901234567890,"one":1.0,"isError":false,"html":"<&>"}`
