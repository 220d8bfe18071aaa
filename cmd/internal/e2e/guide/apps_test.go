//go:build unix

package guide

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// testAppsPage follows docs/how-to/apps.md. Then a host that shows apps gets the page of the server
// byte for byte, and an answer to what the page calls by its own name.
func testAppsPage(t *testing.T, p *e2e.Program) {
	toolchain.Need(t, "node", toolchain.AppPackages)
	packages := filepath.Join(toolchain.Root(), ".ci", "apps")
	r := newReader(t, p, packages)
	r.paste("mkdir -p ~/go/bin && ln -s '" + p.Plain + "' ~/go/bin/wasmgate && PATH=~/go/bin:$PATH")
	r.readPage(t, "how-to/apps.md", 5)
	want, err := os.ReadFile(filepath.Join(packages, "node_modules/@modelcontextprotocol/server-basic-vanillajs/dist/mcp-app.html"))
	if err != nil {
		t.Fatal(err)
	}
	host := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
		Extensions: map[string]any{"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}}},
	}})
	session, err := host.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.gateway.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	uri := ""
	timelimit.Wait(t, "the gateway has the lockfile", func() bool {
		for tool, err := range session.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if ui, ok := tool.Meta["ui"].(map[string]any); ok && tool.Name == "clock__get-time" {
				uri, _ = ui["resourceUri"].(string)
			}
		}
		return uri != ""
	})
	page, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || page.Contents[0].Text != string(want) {
		t.Fatalf("the page %q is not that of the server: %v", uri, err)
	}
	if res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "get-time"}); err != nil || res.IsError {
		t.Errorf("the call of the page: %+v, %v", res, err)
	}
}
