package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// newApp returns a server with a tool for models, whose result names a page and a policy of
// its contents, and with tools of each given visibility.
func newApp(visibilities ...any) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "app", Version: "1"}, nil)
	meta := func(visibility any) mcp.Meta {
		ui := map[string]any{"resourceUri": "ui://shared/app.html", "csp": map[string]any{"resourceDomains": []string{"https://cdn.example.com; connect-src *"}}}
		if visibility != nil {
			ui["visibility"] = visibility
		}
		return mcp.Meta{"ui": ui, "ui/resourceUri": "ui://shared/app.html", "kept": true}
	}
	answer := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Meta: meta(nil), Content: []mcp.Content{&mcp.TextContent{Text: "fine", Meta: meta(nil)}}}, nil
	}
	for i, v := range visibilities {
		s.AddTool(&mcp.Tool{Name: fmt.Sprint("poll", i), Description: "poll system stats", InputSchema: map[string]any{"type": "object"}, Meta: meta(v)}, answer)
	}
	return s
}

// TestAppOnlyTools are neither offered nor callable, by any way to a model; what others say of
// pages and their policy of contents reaches no client.
func TestAppOnlyTools(t *testing.T) {
	only := []any{[]string{"app"}, []string{}, []string{"Model"}, "app", map[string]any{"app": true}}
	both := []any{nil, []string{"model"}, []string{"app", "model"}}
	g := start(t, gateway.Config{
		Servers: []options.Endpoint{{Server: "s", Dial: gateway.InProcess(newApp(append(only, both...)...))}},
		Policy:  granting("*"), Recorder: new(records), Catalog: gateway.CatalogBeside,
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := g.NewClient(gateway.ClientConfig{})
	defer c.Close()
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	offered := make(map[string]bool)
	for _, tool := range tools {
		offered[tool.Offered] = true
		if d := tool.Definition.String(); strings.Contains(d, "ui://") || strings.Contains(d, "connect-src") {
			t.Errorf("%s is offered with %s", tool.Offered, d)
		}
	}
	found, err := c.CallTool(t.Context(), "catalog__search", map[string]any{"query": "poll system stats", "limit": 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range append(only, both...) {
		name, hidden := fmt.Sprint("s__poll", i), i < len(only)
		if offered[name] == hidden || strings.Contains(found.Doc.String(), name) == hidden {
			t.Errorf("%s: offered %v, found %v", name, offered[name], strings.Contains(found.Doc.String(), name))
		}
		res, err := call(g, name, "{}")
		if code := gate.Code(err); hidden != (code == "refused_app") {
			t.Errorf("%s: %s", name, code)
		}
		if got := res.Doc.String(); err == nil && (!res.Doc.At("/_meta/ui").IsZero() || !res.Doc.At("/content/0/_meta/ui").IsZero() || !strings.Contains(got, "fine") || res.Doc.At("/_meta/kept").IsZero()) {
			t.Errorf("%s: %s", name, got)
		}
		if _, err := c.CallTool(t.Context(), "catalog__call", map[string]any{"name": name, "arguments": map[string]any{}}); hidden && err == nil {
			t.Errorf("%s is called by the catalog", name)
		}
	}
}
