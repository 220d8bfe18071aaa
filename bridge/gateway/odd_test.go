package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// oddTool makes a definition in which each member may be what MCP does not say.
func oddTool(r *rand.Rand, name string) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	schemas := []string{
		`{"type":"object"}`, `{"type":"string"}`, `{"type":["object","null"]}`, `{"type":["null","string"]}`, `{"properties":{"a":true}}`, `{"type":"object","properties":{"a":true,"b":false,"c":{}}}`,
		`true`, `false`, `null`, `{}`, `7`, `"object"`, `[]`, `{"type":"array","items":{"type":"string"}}`, `{"anyOf":[{"type":"object"},{"type":"null"}]}`, `{"type":"object","required":"a"}`, `{"type":"object","required":[1]}`,
		`{"type":"object","properties":[]}`, `{"type":"object","properties":{"a":7}}`, `{"type":null}`, `{"type":"objekt"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, `{"$ref":"https://example.com/s.json"}`, `{"oneOf":[]}`, `{"const":{}}`, `{"type":"object","additionalProperties":false}`,
	}
	odd := []string{`7`, `null`, `"x"`, `[]`, `{}`, `true`, `[{}]`, `[7]`}
	members := map[string][]string{
		"inputSchema": schemas, "outputSchema": schemas, "title": odd, "description": odd, "_meta": odd,
		"annotations": append(slices.Clone(odd), `{"readOnlyHint":"yes"}`, `{"title":7,"openWorldHint":true}`),
		"execution":   append(slices.Clone(odd), `{"taskSupport":"maybe"}`, `{"taskSupport":"optional"}`),
		"icons":       append(slices.Clone(odd), `[{"src":7},{"src":"https://example.com/a.png","sizes":"any"}]`, `[{"src":"data:image/png;base64,iVBORw0KGgo=","sizes":[1]}]`),
	}
	out := fmt.Sprintf(`{"name":%q`, name)
	for _, member := range []string{"inputSchema", "outputSchema", "title", "description", "annotations", "execution", "icons", "_meta"} {
		if member == "inputSchema" || r.IntN(3) == 0 {
			out += fmt.Sprintf(`,%q:%s`, member, pick(members[member]...))
		}
	}
	return out + "}"
}

// However odd the definitions of some tools are, strict clients list the others: that one
// alone is repaired, loses what is odd, or is quarantined.
func TestOddToolsDoNotSpoilTheList(t *testing.T) {
	unraced.Long(t)
	r := seed.Rand(t)
	tools := []string{`{"name":"good","inputSchema":{"type":"object"}}`}
	for i := range 1000 {
		tools = append(tools, oddTool(r, fmt.Sprintf("odd%d", i)))
	}
	up := httptest.NewServer(oddServer(tools))
	defer up.Close()
	g := start(t, gateway.Config{Recorder: new(records), Policy: granting("up__*"), Servers: []options.Endpoint{{Server: "up", URL: up.URL}}})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(g)
	defer web.Close()

	listed := map[string]bool{}
	c := mcp.NewClient(&mcp.Implementation{Name: "strict", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	timelimit.Wait(t, "the policy decides on all tools", func() bool { // on a slow machine not in the time of one listing
		for one, err := range s.Tools(t.Context(), nil) {
			if err != nil && strings.Contains(err.Error(), "the tools cannot be listed") {
				return false
			}
			if err != nil {
				t.Fatalf("the Go SDK: %v", err)
			}
			listed[one.Name] = true
		}
		return true
	})
	quarantined := 0
	for _, status := range g.Fleet().Status() {
		for _, n := range status.Notes {
			if n.Quarantined {
				quarantined++
			}
		}
	}
	t.Logf("%d tools listed, %d quarantined", len(listed), quarantined)
	if !listed["up__good"] || len(listed)+quarantined != len(tools) || len(listed) < 100 || quarantined < 100 {
		t.Errorf("%d tools listed, %d quarantined, of %d", len(listed), quarantined, len(tools))
	}
	if _, err := call(g, "up__good", `{}`); err != nil {
		t.Error(err)
	}
	if folder := os.Getenv("WASMGATE_AGENTS"); folder != "" {
		if got := listedByCodex(t, folder, web.URL+"/mcp"); len(got) != len(listed) {
			t.Errorf("Codex lists %d tools, the Go SDK %d", len(got), len(listed))
		}
	}
	if got := listedByTypeScript(t, web.URL+"/mcp"); len(got) != len(listed) {
		t.Errorf("the TypeScript SDK lists %d tools, the Go SDK %d", len(got), len(listed))
	}
}

// oddServer serves tools of any definitions, which all answer nothing.
func oddServer(tools []string) http.Handler {
	return oddServerOf(map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`,
		"tools/list": `{"tools":[` + strings.Join(tools, ",") + `]}`,
		"tools/call": `{"content":[]}`,
	})
}

// oddServerOf answers each method with a result.
func oddServerOf(results map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || err != nil {
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		msg := gate.MustDoc(string(body))
		result := results[msg.Get("method").Text()]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case msg.Get("id").IsZero():
			w.WriteHeader(http.StatusAccepted)
		case result == "":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, msg.Get("id"))
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.Get("id"), result)
		}
	})
}

// listedByCodex returns what Codex lists, which is made with the SDK for Rust. Npm has installed it
// in the folder; see .ci/nightly.
func listedByCodex(t *testing.T, folder, url string) (names []string) {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "[mcp_servers.odd]\nurl = %q\n", url), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(folder, "node_modules", ".bin", "codex"), "app-server")
	c.Env = append(os.Environ(), "CODEX_HOME="+home)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close() // it ends then
		_ = c.Wait()
	}()
	for _, line := range []string{
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"strict","title":"strict","version":"1"}}}`, `{"method":"initialized"}`,
		`{"id":2,"method":"mcpServerStatus/list","params":{}}`,
	} {
		if _, err := fmt.Fprintln(in, line); err != nil {
			t.Fatal(err)
		}
	}
	for d := json.NewDecoder(out); ; {
		var m struct {
			ID     any
			Result struct {
				Data []struct{ Tools map[string]any }
			}
		}
		if err := d.Decode(&m); err != nil {
			t.Fatalf("Codex: %v", err)
		}
		if m.ID != 2.0 {
			continue
		}
		for _, server := range m.Result.Data {
			names = slices.AppendSeq(names, maps.Keys(server.Tools))
		}
		return names
	}
}

const listScript = `
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const client = new Client({ name: "strict", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[1])));
const names = [];
for (let cursor; ;) {
  const page = await client.listTools({ cursor });
  names.push(...page.tools.map((t) => t.name));
  if (!(cursor = page.nextCursor)) break;
}
console.log(JSON.stringify(names));
await client.close();
`

// listedByTypeScript returns what the SDK for TypeScript lists.
func listedByTypeScript(t *testing.T, url string) (names []string) {
	t.Helper()
	toolchain.Need(t, "node", toolchain.NodePackages)
	c := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", listScript, url)
	c.Dir = filepath.Join(toolchain.Root(), ".ci", "node")
	stderr := new(strings.Builder)
	c.Stderr = stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("the TypeScript SDK: %v\n%.2000s", err, stderr)
	}
	if err := json.Unmarshal(out, &names); err != nil {
		t.Fatal(err)
	}
	return names
}

// Icons and URIs in lists follow the rules for links: what would be fetched without a
// click from elsewhere is left out, and a resource that a browser or an editor would act
// on is not offered.
func TestLinksInLists(t *testing.T) {
	const icons = `"icons":[{"src":"https://evil.example/?d=S"},{"src":"javascript:alert(1)"},{"src":"data:image/png;base64,iVBORw0KGgo="}]`
	up := httptest.NewServer(oddServerOf(map[string]string{
		"initialize":               `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"odd","version":"1"}}`,
		"tools/list":               `{"tools":[{"name":"t","inputSchema":{"type":"object"},` + icons + `}]}`,
		"prompts/list":             `{"prompts":[{"name":"p",` + icons + `}]}`,
		"resources/list":           `{"resources":[{"uri":"note://a","name":"a",` + icons + `},{"uri":"javascript:alert(1)","name":"b"},{"uri":"vscode://x/y","name":"c"},{"uri":"https://example.com/a?b=c","name":"d"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"javascript:{x}","name":"b"},{"uriTemplate":"note://{id}/x","name":"d"}]}`,
	}))
	defer up.Close()
	p := granting("up__*")
	p.Options.Grants[0].Servers = []string{"up"}
	g := start(t, gateway.Config{Recorder: new(records), Policy: p, Servers: []options.Endpoint{{Server: "up", URL: up.URL}}})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(g)
	defer web.Close()
	c := mcp.NewClient(&mcp.Implementation{Name: "strict", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var shown []mcp.Icon
	var uris []string
	for one, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, one.Icons...)
	}
	for one, err := range s.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, one.Icons...)
	}
	for one, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		shown, uris = append(shown, one.Icons...), append(uris, one.URI)
	}
	for one, err := range s.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, one.URITemplate)
	}
	if len(shown) != 3 || slices.ContainsFunc(shown, func(i mcp.Icon) bool { return !strings.HasPrefix(i.Source, "data:image/png") }) {
		t.Errorf("icons %+v", shown)
	}
	if want := []string{"note://a", "https://example.com/a?b=c", "note://{id}/x"}; !slices.Equal(uris, want) {
		t.Errorf("URIs %q, want %q", uris, want)
	}
}
