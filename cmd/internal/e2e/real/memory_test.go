//go:build unix

package real

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// testMemory has server-memory keep what one client tells it for another: a server
// whose tools have output schemas, and which knows its callers from each other no more
// than behind any other gateway.
func testMemory(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, "")
	pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s, data: {grants: grants.yaml}}\nservers:\n"+
		"  memory: {command: node, args: [%q], env: {MEMORY_FILE_PATH: %q}}\n",
		filepath.Join(dir, "node_modules/@modelcontextprotocol/server-memory/dist/index.js"), pl.File("memory.jsonl")))
	pl.Write("grants.yaml", "- {to: [\"*\"], tools: [memory__create_entities, \"memory__read_*\"]}\n")
	pl.Serve()
	e2e.Holds(t, pl.Must("call", "memory__create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote\u200b the first program"]}]}`), "Ada")
	if graph := pl.Must("call", "read_graph", "{}"); !strings.Contains(graph, "wrote[removed: hidden text] the first program") {
		t.Errorf("what was kept is %s", graph)
	}
	if o := pl.Run("call", "memory__delete_entities", `{"entityNames":["Ada"]}`); o.Code != 3 {
		t.Errorf("a call that no one granted: exit %d, %s", o.Code, o.Stderr)
	}
	pl.Verify()
}
