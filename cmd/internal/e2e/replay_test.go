//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// testRecordReplay records a session at two servers, and answers a later one from the
// record: one server must be stubbed and is gone by then, the other is called.
func testRecordReplay(t *testing.T, p *program) {
	gone := &stub{tools: `[{"name":"echo","description":"Of old.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]`, answer: answerFine}
	there := &stub{tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, answer: answerFine}
	servers := "servers:\n  gone: {url: " + gone.start(t) + "}\n  there: {url: " + there.start(t) + ", replay: live}\naudit: {record: full}\n"
	pl := p.place(t, servers)
	pl.must("grant", "--yes", "*")
	for _, args := range []string{`{"n":1}`, `{"n":2}`} {
		pl.must("call", "gone__echo", args)
	}
	before, err := os.ReadFile(pl.file("state/audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}

	c, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{
		Command: pl.command(context.WithoutCancel(t.Context()), p.plain, pl.args("serve", "--stdio", "--replay", pl.file("state/audit.jsonl"))...),
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
	if n := len(gone.calls("echo")); n != 2 {
		t.Errorf("the stubbed server saw %d calls, want those 2 that were recorded", n)
	}
	if n := len(there.calls("echo")); n != 1 {
		t.Errorf("the live server saw %d calls, want 1", n)
	}
	if after, err := os.ReadFile(pl.file("state/audit.jsonl")); err != nil || string(after) != string(before) {
		t.Errorf("the recording has changed, or is gone: %v", err)
	}
}
