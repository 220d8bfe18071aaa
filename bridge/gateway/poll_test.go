package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// A server that ends the stream of its answer and is asked for it again: wasmgate
// comes back, and sends its own client away likewise.
func TestPolling(t *testing.T) {
	upstream := mcp.NewServer(&mcp.Implementation{Name: "slow", Version: "1"}, nil)
	upstream.AddTool(&mcp.Tool{Name: "think", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 20 * time.Millisecond})
			time.Sleep(100 * time.Millisecond)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "42"}}}, nil
		})
	counted := func(resumed *atomic.Int32, h http.Handler) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
				resumed.Add(1)
			}
			h.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	var atServer, atGateway atomic.Int32
	url := counted(&atServer, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return upstream }, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}))
	var r recorder
	g := start(t, gateway.Config{Recorder: &r, Servers: []options.Endpoint{{Server: "slow", URL: url}}, Policy: granting("slow__*")})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		// A client that can be asked gets its answers as streams.
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	})
	c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: counted(&atGateway, g) + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "slow__think"})
	if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "42" {
		t.Errorf("the result is %+v, %v", res, err)
	}
	if atServer.Load() == 0 || atGateway.Load() == 0 {
		t.Errorf("wasmgate has come back %d times, its client %d times", atServer.Load(), atGateway.Load())
	}
}
