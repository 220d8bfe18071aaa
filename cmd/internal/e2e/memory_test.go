//go:build unix

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// testMemory has server-memory keep what one client tells it for another: a server
// whose tools have output schemas, and which knows its callers from each other no more
// than behind any other gateway.
func testMemory(t *testing.T, p *program) {
	dir := node(t)
	pl := p.place(t, "")
	pl.write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s, data: {grants: grants.yaml}}\nservers:\n"+
		"  memory: {command: node, args: [%q], env: {MEMORY_FILE_PATH: %q}}\n",
		filepath.Join(dir, "node_modules/@modelcontextprotocol/server-memory/dist/index.js"), pl.file("memory.jsonl")))
	pl.write("grants.yaml", "- {to: [\"*\"], tools: [memory__create_entities, \"memory__read_*\"]}\n")
	pl.serve()
	holds(t, pl.must("call", "memory__create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote\u200b the first program"]}]}`), "Ada")
	if graph := pl.must("call", "read_graph", "{}"); !strings.Contains(graph, "wrote[removed: hidden text] the first program") {
		t.Errorf("what was kept is %s", graph)
	}
	if o := pl.run("call", "memory__delete_entities", `{"entityNames":["Ada"]}`); o.code != 3 {
		t.Errorf("a call that nobody granted: exit %d, %s", o.code, o.stderr)
	}
	pl.verify()
}
