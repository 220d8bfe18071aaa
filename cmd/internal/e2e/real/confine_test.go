//go:build unix

package real

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// pythonServer answers what a gateway asks of a server, and offers to read a
// file.
const pythonServer = `
import json, sys, tempfile
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {}
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}]}
    elif m["method"] == "tools/call":
        try:
            tempfile.TemporaryFile().write(b"x")
            text = open(m["params"]["arguments"]["path"]).read()
        except OSError as e:
            text = "failed: %s" % e
        r = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// Real servers, started by node, npx and Python, work confined to what they
// need, and see nothing else.
func testConfinedServers(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, "")
	pl.Write("docs/a.txt", "the text of a file")
	pl.Write("secret/key", "the text of a key")
	pl.Write("npm/.keep", "")
	pl.Write("server.py", pythonServer)
	server := filepath.Join(dir, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	docs, packages := pl.File("docs"), filepath.Join(dir, "node_modules")
	configure := func(confined bool) {
		rules := func(format string, args ...any) string {
			if !confined {
				return ""
			}
			return ", confine: " + fmt.Sprintf(format, args...)
		}
		text := "version: 1\npolicy: {timeout: 5s}\nservers:\n"
		text += fmt.Sprintf("  node: {command: node, args: [%q, %q]%s}\n", server, pl.Dir, rules("{read: [%q], write: [%q]}", packages, docs))
		text += fmt.Sprintf("  npx: {command: npx, args: [--offline, --no-install, mcp-server-filesystem, %q], cwd: %q, env: {npm_config_cache: %q, npm_config_update_notifier: \"false\"}%s}\n",
			pl.Dir, dir, pl.File("npm"), rules("{execute: [%q], write: [%q, %q]}", dir, docs, pl.File("npm")))
		if python := "/usr/bin/python3"; toolchain.Works(t, python) { // one in a home has its libraries there
			text += fmt.Sprintf("  python: {command: %q, args: [%q]%s}\n", python, pl.File("server.py"), rules("{read: [%q, %q]}", pl.File("server.py"), docs))
		} else {
			t.Log("left out: /usr/bin/python3 does not work")
		}
		pl.Write("wasmgate.yaml", text)
	}
	configure(false)
	for _, tool := range []string{"node__*", "npx__*", "python__*", "learnt__*"} {
		pl.Must("grant", "--yes", "--force", tool)
	}
	calls := map[string]string{"node": "node__read_text_file", "npx": "npx__read_text_file", "python": "python__read"}
	read := func(tool, file string) e2e.Outcome {
		return pl.Run("call", tool, fmt.Sprintf(`{"path":%q}`, pl.File(file)))
	}
	if o := read("node__read_text_file", "secret/key"); o.Code != 0 { // or the test below shows nothing
		t.Fatalf("unconfined: exit %d, %s", o.Code, o.Stderr)
	}
	configure(true)
	var s struct {
		Servers []struct {
			Server, Phase, Error string
			Confined             bool
			Unenforced           []string
		}
	}
	if err := json.Unmarshal([]byte(pl.Must("status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	for _, one := range s.Servers {
		if one.Server == "local" {
			continue
		}
		t.Run(one.Server, func(t *testing.T) {
			if len(one.Unenforced) > 0 {
				t.Skip("this system cannot confine: ", one.Unenforced)
			}
			if one.Phase != "ready" || !one.Confined {
				t.Fatalf("%s, confined: %v: %s", one.Phase, one.Confined, one.Error)
			}
			if o := read(calls[one.Server], "docs/a.txt"); o.Code != 0 || !strings.Contains(o.Stdout, "the text of a file") {
				t.Errorf("what it may read: exit %d, %s%s", o.Code, o.Stdout, o.Stderr)
			}
			if o := read(calls[one.Server], "secret/key"); strings.Contains(o.Stdout, "the text of a key") || !strings.Contains(strings.ToLower(o.Stdout), "permission denied") {
				t.Errorf("what it may not: exit %d, %s%s", o.Code, o.Stdout, o.Stderr)
			}
		})
	}

	if len(s.Servers) < 2 || len(s.Servers[1].Unenforced) > 0 {
		return // said above
	}
	t.Run("a folder that is not there", func(t *testing.T) {
		pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\nservers:\n  node: {command: node, args: [%q, %q], confine: {read: [%q]}}\n", server, docs, pl.File("none")))
		if out := pl.Must("status"); !strings.Contains(out, "spawn_failed") || !strings.Contains(out, "create it or leave it out") {
			t.Error(out)
		}
	})
	t.Run("what is learnt is enough", func(t *testing.T) {
		bare := fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\nservers:\n  learnt:\n    command: node\n    args: [%q, %q]\n", server, docs)
		pl.Write("wasmgate.yaml", bare)
		o := pl.Run("confine", "learn", "learnt", "--for", "0s",
			"--call", fmt.Sprintf(`read_text_file {"path":%q}`, pl.File("docs/a.txt")),
			"--call", fmt.Sprintf(`write_file {"path":%q,"content":"new"}`, pl.File("docs/new.txt")))
		_, block, ok := strings.Cut(o.Stdout, "  learnt:\n")
		if !ok || o.Code != 0 || o.Stderr != "" || strings.Contains(block, "# left out") {
			t.Fatalf("exit %d, %s%s", o.Code, o.Stdout, o.Stderr)
		}
		pl.Write("wasmgate.yaml", bare+block)
		if err := os.Remove(pl.File("docs/new.txt")); err != nil {
			t.Fatal(err)
		}
		if o := read("learnt__read_text_file", "docs/a.txt"); o.Code != 0 {
			t.Errorf("exit %d, %s%s\n%s", o.Code, o.Stdout, o.Stderr, block)
		}
		if o := pl.Run("call", "learnt__write_file", fmt.Sprintf(`{"path":%q,"content":"new"}`, pl.File("docs/new.txt"))); o.Code != 0 {
			t.Errorf("exit %d, %s%s\n%s", o.Code, o.Stdout, o.Stderr, block)
		}
	})
}
