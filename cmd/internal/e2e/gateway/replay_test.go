//go:build unix

package gateway

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// testRecordReplay records a session at two servers, and answers a later one from the
// record: one server must be stubbed and is gone by then, the other is called.
func testRecordReplay(t *testing.T, p *e2e.Program) {
	gone := &e2e.Stub{Tools: `[{"name":"echo","description":"Of old.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]`, Answer: e2e.AnswerFine}
	there := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	servers := "servers:\n  gone: {url: " + gone.Start(t) + "}\n  there: {url: " + there.Start(t) + ", replay: live}\naudit: {record: full}\n"
	pl := p.Place(t, servers)
	pl.Must("grant", "--yes", "*")
	for _, args := range []string{`{"n":1}`, `{"n":2}`} {
		pl.Must("call", "gone__echo", args)
	}
	before, err := os.ReadFile(pl.File("state/audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}

	c, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{
		Command: pl.Command(context.WithoutCancel(t.Context()), p.Plain, pl.Args("serve", "--stdio", "--replay", pl.File("state/audit.jsonl"))...),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	described := false
	for _, tool := range tools.Tools {
		described = described || tool.Name == "gone__echo" && tool.Description == "Of old."
	}
	if !described {
		t.Errorf("the stubbed tool is not offered by its definition: %+v", tools.Tools)
	}
	for _, call := range []struct{ does, tool, args, want string }{
		{"a recorded call", "gone__echo", `{"n":2}`, "fine"},
		{"another one", "gone__echo", `{ "n": 1 }`, "fine"},
		{"one that was answered", "gone__echo", `{"n":1}`, "holds no answer"},
		{"one that was never made", "gone__echo", `{"n":3}`, "holds no answer"},
		{"arguments that break the schema", "gone__echo", `{"n":"x"}`, "refused: "},
		{"a live tool", "there__echo", `{"n":3}`, "fine"},
		{"a pure one", "local__hash", `{"text":"hello","algorithm":"sha256"}`, "2cf24dba"},
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: json.RawMessage(call.args)})
		if err != nil {
			t.Fatalf("%s: %v", call.does, err)
		}
		if text, ok := res.Content[0].(*mcp.TextContent); !ok || !strings.Contains(text.Text, call.want) {
			t.Errorf("%s: %+v, want %s", call.does, res.Content[0], call.want)
		}
	}
	if n := len(gone.Calls("echo")); n != 2 {
		t.Errorf("the stubbed server saw %d calls, want those 2 that were recorded", n)
	}
	if n := len(there.Calls("echo")); n != 1 {
		t.Errorf("the live server saw %d calls, want 1", n)
	}
	if after, err := os.ReadFile(pl.File("state/audit.jsonl")); err != nil || string(after) != string(before) {
		t.Errorf("the recording has changed, or is gone: %v", err)
	}
}
