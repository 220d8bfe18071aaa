package link_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// changing is a server of the Go SDK that speaks MCP 2026-07-28 and tells of changes.
func changing(uris ...string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{ListChanged: true}, Resources: &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true},
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	rig.AddTool(s, "one")
	for _, uri := range uris {
		s.AddResource(&sdk.Resource{Name: uri, URI: uri}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{}, nil
		})
	}
	return s
}

// TestModernChanges: a server of 2026 tells what has changed, also after its stream broke
// and over both transports.
func TestModernChanges(t *testing.T) {
	unraced.Long(t)
	for name, config := range map[string]func(*sdk.Server) (options.Endpoint, func()){
		"HTTP": func(s *sdk.Server) (options.Endpoint, func()) {
			srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
			t.Cleanup(srv.Close)
			return options.Endpoint{Server: "s", URL: srv.URL, Tools: rig.Options()}, srv.CloseClientConnections
		},
		"lines": func(s *sdk.Server) (options.Endpoint, func()) {
			dial := func() (sdk.Transport, error) {
				a, b := sdk.NewInMemoryTransports()
				_, err := s.Connect(context.WithoutCancel(t.Context()), a, nil)
				return b, err
			}
			return options.Endpoint{Server: "s", Dial: dial, Protocol: mcp.Stateless, Tools: rig.Options()}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a server's announcements are gathered for a second each
			s := changing("file:///a", "file:///b")
			cfg, breaks := config(s)
			f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{cfg}})
			var mu sync.Mutex
			var updated []string
			f.Sessions.OnNotice(func(n mcp.Notice) {
				mu.Lock()
				defer mu.Unlock()
				updated = append(updated, n.Params.Get("uri").Text())
			})
			if err := f.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			tools := func(n int) func() bool { return func() bool { return len(f.KnownFeatures(gate.FeatureTool)) == n } }
			rig.AddTool(s, "two")
			rig.Within(t, "a tool that was added is listed", tools(2))

			g, _ := rig.NewGate(t, f)
			subscribe := func(uri, id string) {
				t.Helper()
				if _, err := g.Do(t.Context(), gate.Call{ID: id, Action: gate.Subscribe, Name: uri, Who: gate.Local()}); err != nil {
					t.Fatal(err)
				}
			}
			subscribe("file:///a", "1")
			subscribe("file:///b", "2")
			heard := func(uri string) func() bool {
				return func() bool {
					_ = s.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: uri})
					mu.Lock()
					defer mu.Unlock()
					return slices.Contains(updated, uri)
				}
			}
			rig.Within(t, "an update of a", heard("file:///a"))
			rig.Within(t, "an update of b", heard("file:///b"))
			rig.AddTool(s, "three")
			rig.Within(t, "a tool that was added after subscriptions is listed", tools(3))
			if err := f.Sessions.Unsubscribe(t.Context(), "2", "file:///b"); err != nil {
				t.Fatal(err)
			}
			rig.AddTool(s, "four")
			rig.Within(t, "a tool that was added after the end of a subscription is listed", tools(4))
			if breaks == nil {
				return
			}
			breaks()
			mu.Lock()
			updated = nil
			mu.Unlock()
			rig.AddTool(s, "five")
			rig.Within(t, "a tool that was added while the stream was broken is listed", tools(5))
			rig.Within(t, "an update of a after that", heard("file:///a"))
		})
	}
}

// TestModernSubscribeRefused: a resource that the server does not tell of is not
// subscribed to.
func TestModernSubscribeRefused(t *testing.T) {
	s := changing("file:///a")
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(srv.Close)
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{{Server: "s", URL: srv.URL, Tools: rig.Options()}, {Server: "n", URL: rig.URLOf(t, rig.NewModern(nil)), Tools: rig.Options()}}})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, _ := rig.NewGate(t, f)
	res, err := g.Do(t.Context(), gate.Call{Action: gate.Subscribe, Name: "file:///ä", Who: gate.Local()})
	if err == nil && !res.IsError {
		t.Errorf("a server without subscriptions has one: %s", res.Doc)
	}
}
