//go:build unix

package real

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// testGroups offers clients one group: by the path, and to a relayed client by its own
// process. What is not in it they can neither list, nor find, nor call.
func testGroups(t *testing.T, p *e2e.Program) {
	pl := p.Place(t, "groups: {hashes: [local__hash], queries: [local__json_query]}\ncatalog: {mode: beside}\n")
	gw := pl.Serve()
	stdio := append([]string{p.Path}, pl.Args("serve", "--stdio", "--group", "hashes")...)
	for front, transport := range map[string]mcp.Transport{
		"path":  &mcp.StreamableClientTransport{Endpoint: gw.URL + "/hashes"},
		"relay": &mcp.CommandTransport{Command: pl.Command(context.WithoutCancel(t.Context()), stdio[0], stdio[1:]...)},
	} {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
			Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatalf("%s: %v", front, err)
		}
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatalf("%s: %v", front, err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if want := "catalog__call catalog__describe catalog__search local__hash"; strings.Join(names, " ") != want {
			t.Errorf("%s: tools %v, want %s", front, names, want)
		}
		hash := map[string]any{"text": "hello", "algorithm": "sha256"}
		for _, params := range []*mcp.CallToolParams{
			{Name: "local__hash", Arguments: hash},
			{Name: "catalog__call", Arguments: map[string]any{"tool": "local__hash", "arguments": hash}},
		} {
			if res, err := c.CallTool(t.Context(), params); err != nil || res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "2cf24dba") {
				t.Errorf("%s: %s: %+v, %v", front, params.Name, res, err)
			}
		}
		for _, params := range []*mcp.CallToolParams{
			{Name: "local__json_query", Arguments: map[string]any{}},
			{Name: "catalog__call", Arguments: map[string]any{"tool": "local__json_query"}},
		} {
			if res, err := c.CallTool(t.Context(), params); err == nil || !strings.Contains(err.Error(), `unknown tool "local__json_query"`) {
				t.Errorf("%s: %s: %+v, %v", front, params.Name, res, err)
			}
		}
		c.Close()
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gw.URL+"/nothing", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("a group that is not there: %s", resp.Status)
	}
	relayed, parents := 0, []string(nil)
	for _, e := range pl.Log() {
		if e.Event == "done" && e.Tool == "local__hash" && e.Parent != "" {
			relayed++
			parents = append(parents, e.Parent)
		}
		if e.Event == "done" && e.Tool == "catalog__call" && e.Code == "ok" && !slices.Contains(parents, e.ID) {
			t.Errorf("a call of catalog__call is recorded that made none: %+v", e)
		}
	}
	if relayed != 2 {
		t.Errorf("%d calls are recorded that were made by another, want 2", relayed)
	}
	pl.Verify()
	gw.Signal(os.Interrupt)
	gw.Wait()
	checkBanner(pl)
}

// checkBanner starts a gateway of a group, of whose tools one is granted: what it says
// is that, and not that the rest are in want of a grant.
func checkBanner(pl *e2e.Place) {
	pl.T.Helper()
	if got := banner(pl, "--group", "queries"); !strings.Contains(got, "1 offered to local: local__json_query\n") || strings.Contains(got, "Nothing of these servers") {
		pl.T.Errorf("the gateway says:\n%s", got)
	}
}

// testSlowBanner starts a server that is granted, and ready only after the first list of
// tools was made without it: the gateway offers it, and does not ask for a grant.
func testSlowBanner(t *testing.T, p *e2e.Program) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pl := p.Place(t, fmt.Sprintf("servers:\n  late: {command: sh, args: [-c, 'sleep 2.5; exec %s'], env: {WASMGATE_TEST_TAILOR: stdio}}\n", self))
	pl.Write("grants.yaml", "- {to: [local], servers: [late]}\n")
	if got := banner(pl); !strings.Contains(got, "late__") || strings.Contains(got, "Nothing of these servers") {
		t.Errorf("the gateway says:\n%s", got)
	}
}

// banner starts a gateway, and returns what it says until it says how clients connect.
func banner(pl *e2e.Place, flags ...string) string {
	pl.T.Helper()
	r, w := io.Pipe()
	c := pl.Command(context.WithoutCancel(pl.T.Context()), pl.Program.Path, pl.Args(append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)...)
	c.Stdout = w
	gw := e2e.Start(pl.T, c)
	go func() { <-gw.Ended; w.Close() }()
	var banner strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan() && !strings.HasPrefix(lines.Text(), "Add it "); {
		banner.WriteString(lines.Text() + "\n")
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return banner.String()
}
