package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestPagesOfApps are among the pins, with what they ask of their host and what is cut, and are
// approved there.
func TestPagesOfApps(t *testing.T) {
	maps := mcp.NewServer(&mcp.Implementation{Name: "maps", Version: "1"}, nil)
	mcp.AddTool(maps, &mcp.Tool{Name: "show", Meta: mcp.Meta{"ui": map[string]any{"resourceUri": "ui://map/app.html"}}}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	maps.AddResource(&mcp.Resource{URI: "ui://map/app.html", Name: "page", MIMEType: "text/html;profile=mcp-app"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		ui := map[string]any{"csp": map[string]any{"connectDomains": []string{"https://a.example.com", "https://b.example.com", "https://c.example.com; script-src *"}}}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "ui://map/app.html", MIMEType: "text/html;profile=mcp-app", Text: "<script>1</script>", Meta: mcp.Meta{"ui": ui}}}}, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return maps }, nil))
	defer func() { server.CloseClientConnections(); server.Close() }()
	d := open(t, "servers: {maps: {url: "+server.URL+", apps: {connect: [\"https://a.example.com\"]}}}\npins: {mode: strict}\n")
	ctx, end := context.WithCancel(t.Context())
	ended := d.run(ctx)
	defer func() { end(); <-ended }()

	page := d.get("/ui/pins")
	for _, want := range []string{"ui://map/app.html", "medium app/connect", "low app/narrowed", "high app/injection", "high app/wildcard", "&lt;script&gt;1&lt;/script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of pins lacks %q: %s", want, page)
		}
	}
	var shown struct{ Seen string }
	if err := json.Unmarshal([]byte(d.get("/api/v1/pins/maps/diff")), &shown); err != nil {
		t.Fatal(err)
	}
	if w := d.ask("POST", "/api/v1/pins/maps/approval", fmt.Sprintf(`{"seen":%q}`, shown.Seen), nil); w.Code != 200 {
		t.Errorf("approved: %d %s", w.Code, w.Body)
	}
	if page := d.get("/ui/pins"); !strings.Contains(page, "Nothing is quarantined") || !strings.Contains(page, "ui://map/app.html") {
		t.Errorf("after the approval: %s", page)
	}
}
