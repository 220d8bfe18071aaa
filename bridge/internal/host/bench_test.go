package host_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// BenchmarkFront is what a call over HTTP costs between net/http and the gate.
func BenchmarkFront(b *testing.B) {
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
			Do: func(context.Context, gate.Call) (gate.Result, error) {
				return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"done"}]}`)}, nil
			},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	call := `"name":"t","arguments":{"a":1}`
	asked := strings.Replace(rig.Hello, `"capabilities":{}`, `"capabilities":{"roots":{"listChanged":true},"elicitation":{}}`, 1)
	for _, shape := range []struct{ name, era, hello, params string }{
		{"plain", rig.Old, rig.Hello, call},
		{"can be asked", rig.Old, asked, call},
		{"progress token", rig.Old, rig.Hello, call + `,"_meta":{"progressToken":1}`},
		{"without a session", rig.Newest, "", call},
	} {
		b.Run(shape.name, func(b *testing.B) {
			session := ""
			if shape.hello != "" {
				session = rig.OpenSessionWith(b, srv.URL, shape.hello)
			}
			msg := rig.Request(shape.era, "1", "tools/call", shape.params)
			head := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {shape.era}}
			if session != "" {
				head.Set("Mcp-Session-Id", session)
			} else {
				head.Set("Mcp-Method", "tools/call")
				head.Set("Mcp-Name", "t")
			}
			time.Sleep(50 * time.Millisecond) // the session is there
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(msg))
				r.Header = head.Clone()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "done") {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
