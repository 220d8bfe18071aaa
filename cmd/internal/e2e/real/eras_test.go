//go:build unix

package real

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testEras has a server ask the person at the client twice in the middle of a call: servers and
// clients of both protocol revisions of MCP, stateful and stateless, over both transports.
func testEras(t *testing.T, p *e2e.Program) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pl := p.Place(t, fmt.Sprintf(`servers:
  sessions: {url: %q}
  stateless: {url: %q}
  stdio: {command: %q, env: {WASMGATE_TEST_TAILOR: stdio}}
`, startTailor(t, self, "sessions"), startTailor(t, self, "stateless"), self))
	pl.Write("grants.yaml", "- {to: [\"*\"], tools: [\"*\"]}\n")
	gw := pl.Serve()
	stdio := append([]string{p.Path}, pl.Args("serve", "--stdio")...)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for front, transport := range map[string]mcp.Transport{
			"HTTP":  &mcp.StreamableClientTransport{Endpoint: gw.URL},
			"stdio": &mcp.CommandTransport{Command: pl.Command(context.WithoutCancel(t.Context()), stdio[0], stdio[1:]...)},
		} {
			var asked []string // by one call after the other
			c, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked = append(asked, r.Params.Message)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"cm": 40 + len(asked)}}, nil
				},
			}).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			for _, server := range []string{"sessions", "stateless", "stdio"} {
				t.Run(revision+" over "+front+", server "+server, func(t *testing.T) {
					asked = nil
					ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
					defer cancel()
					res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: server + "__measure", Arguments: map[string]any{"what": "coat"}})
					if err != nil {
						t.Fatal(err)
					}
					if text, ok := res.Content[0].(*mcp.TextContent); !ok || res.IsError || text.Text != "coat: 41, 42" {
						t.Errorf("the result is %+v", res.Content[0])
					}
					if want := []string{"the sleeve of the coat", "the collar of the coat"}; !slices.Equal(asked, want) {
						t.Errorf("asked %q, want %q", asked, want)
					}
				})
			}
			c.Close()
		}
	}
	pl.Verify()
	asked := 0
	for _, e := range pl.Log() {
		if e.Event == "done" && e.Action == "elicitation/create" && e.Code == "ok" && e.Parent != "" {
			asked++
		}
	}
	if want := 2 * 2 * 2 * 3; asked != want {
		t.Errorf("%d records of questions, want %d", asked, want)
	}
}

// startTailor starts this program as an MCP server that asks its client, over
// HTTP, and returns its URL.
func startTailor(t *testing.T, self, kind string) string {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), self)
	c.Env = append(os.Environ(), "WASMGATE_TEST_TAILOR="+kind)
	r, w := io.Pipe()
	c.Stdout = w
	p := e2e.Start(t, c)
	go func() { <-p.Ended; w.Close() }()
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("the server has said no URL: %v\n%s", err, p.Stderr)
	}
	return strings.TrimSpace(url)
}
