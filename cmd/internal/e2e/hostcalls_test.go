//go:build unix

package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// askerPolicy judges single host calls, and narrows calls that ask for it. OUT
// stands for a folder.
const askerPolicy = `package wasmgate

deny contains "no private files" if {
	input.action == "sandbox/file"
	contains(input.request.path, "/private/")
}

deny contains "not there" if {
	input.action == "sandbox/http"
	input.request.path == "/v1/forbidden"
}

deny contains "no such key" if {
	input.action == "sandbox/kv"
	input.request.key == "forbidden"
}

deny contains "not for bob" if {
	input.action == "sandbox/secret"
	input.principal.id == "bob"
}

obligations contains {"sandbox": {"http": [], "dirs": ["OUT"], "secrets": [], "kv": false}} if input.arguments.narrow == true

obligations contains {"sandbox": {"fuel": 1000}} if input.arguments.starve == true

obligations contains {"sandbox": {"timeout": "300ms"}} if input.arguments.hurry == true
`

// asker makes a place with a guest that asks for whatever its caller wants: once
// with grants, once with little memory.
func (p *program) asker(t *testing.T, o *origin, secret string) *place {
	t.Helper()
	pl := p.sandboxed(t, fmt.Sprintf(`
principals: {bob: {}}
audit: {record: full}
log: {level: debug}
secrets: {API: {value: "Bearer %s", origin: "%s"}}
tools:
  ask:
    module: asker.wasm
    config: {GREETING: hello}
    grant:
      http: [{origin: "%[2]s", methods: [GET, POST], path: /v1/, private: true}]
      dirs: [{path: docs}, {path: out, write: true}]
      secrets: [API]
      kv: true
  small:
    module: asker.wasm
    server: small
    grant: {http: [{origin: "https://example.com"}], dirs: [{path: docs}], kv: true}
    limits: {memory: 4MiB}
`, secret, o.url), askerModule)
	pl.write("docs/a.txt", "a text")
	pl.write("docs/private/b.txt", "another")
	pl.write("docs/large.txt", strings.Repeat("large ", 1<<20))
	pl.write("out/.keep", "")
	pl.write("policies/asker.rego", strings.ReplaceAll(askerPolicy, "OUT", pl.file("out")))
	return pl
}

// request is what the guest is told to ask for: a request with further members,
// which are written with a comma before them, in it and beside it.
func (o *origin) request(path, in, beside string) string {
	return fmt.Sprintf(`{"do":"http","request":{"url":"%s%s"%s}%s}`, o.url, path, in, beside)
}

func (pl *place) request(do, file, beside string) string {
	return fmt.Sprintf(`{"do":%q,"path":%q%s}`, do, pl.file(file), beside)
}

const withKey = `,"headers":{"Authorization":["{{secret:API}}"]}`

// testHostCalls lets a guest ask its host for what it is granted, for what it is
// not, for what a policy denies, and for what the decision on a call leaves out.
func testHostCalls(t *testing.T, p *program) {
	o, secret := newOrigin(t), rand.Text()
	pl := p.asker(t, o, secret)
	gw := pl.serveModules()
	w := mustWire(t, gw.url)
	if a := w.mustCall(t, "local__ask", `{"do":"env"}`); a.Error == nil {
		t.Errorf("before a grant: %s", a.Result)
	}
	pl.must("grant", "local__ask", "--to", "*")
	said := w.steps(t, []sandboxStep{
		{"a request", "local__ask", o.request("/v1/x", "", ""), `"body":"GET /v1/x  with "`},
		{"a request with a secret, which comes back", "local__ask", o.request("/v1/x", withKey, ""), `with {{secret:API}}"`},
		{"a path that is not granted", "local__ask", o.request("/v2/x", "", ""), "denied"},
		{"a method that is not granted", "local__ask", o.request("/v1/x", `,"method":"DELETE"`, ""), "denied"},
		{"a redirect to what is not granted", "local__ask", o.request("/v1/away", "", ""), "denied"},
		{"a request that the policy denies", "local__ask", o.request("/v1/forbidden", "", ""), "denied"},
		{"an address inside", "local__ask", `{"do":"http","request":{"url":"http://169.254.169.254/"}}`, "denied"},
		{"a secret that there is not", "local__ask", o.request("/v1/x", `,"headers":{"Authorization":["{{secret:OTHER}}"]}`, ""), "denied"},
		{"a request in a narrowed call", "local__ask", o.request("/v1/x", "", `,"narrow":true`), "denied"},
		{"a value", "local__ask", `{"do":"kv","request":{"op":"set","key":"k","value":"kept"}}`, `"found":false`},
		{"a key that the policy denies", "local__ask", `{"do":"kv","request":{"op":"get","key":"forbidden"}}`, "denied"},
		{"a value in a narrowed call", "local__ask", `{"do":"kv","request":{"op":"get","key":"k"},"narrow":true}`, "may keep no values"},
		{"a file", "local__ask", pl.request("read", "docs/a.txt", ""), "a text"},
		{"a file that the policy denies", "local__ask", pl.request("read", "docs/private/b.txt", ""), "ermission denied"},
		{"a file outside", "local__ask", pl.request("read", "wasmgate.yaml", ""), "open "},
		{"a write where reading is granted", "local__ask", pl.request("write", "docs/new", ""), "open "},
		{"a write", "local__ask", pl.request("write", "out/new", `,"text":"written"`), "{}"},
		{"a read in a narrowed call", "local__ask", pl.request("read", "docs/a.txt", `,"narrow":true`), "ermission denied"},
		{"a read of what is left", "local__ask", pl.request("read", "out/new", `,"narrow":true`), "written"},
		{"its configuration", "local__ask", `{"do":"env"}`, `["GREETING=hello"]`},
		{"a log", "local__ask", `{"do":"log","text":"into the log"}`, "{}"},
	})
	asBob := pl.run("call", "local__ask", o.request("/v1/x", withKey, ""), "--as", "bob")
	if asBob.code != 1 || !strings.Contains(asBob.stdout, "denied") {
		t.Errorf("a secret that the policy denies: exit %d, %s%s", asBob.code, asBob.stdout, asBob.stderr)
	}
	if diff := cmp.Diff([]string{"", "Bearer " + secret, ""}, o.seen()); diff != "" {
		t.Errorf("the origin was sent these keys (-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(pl.file("out/new")); err != nil || string(b) != "written" {
		t.Errorf("the file has %q, %v", b, err)
	}
	want := map[string]int{
		"sandbox/http allow": 5, "sandbox/http deny": 7, "sandbox/secret allow": 1, "sandbox/secret deny": 1,
		"sandbox/kv allow": 1, "sandbox/kv deny": 2, "sandbox/file allow": 3, "sandbox/file deny": 2,
	}
	if diff := cmp.Diff(want, pl.checkCalls()); diff != "" {
		t.Errorf("host calls in the log (-want +got):\n%s", diff)
	}
	pl.checkAudit(o)
	pl.secretNowhere(secret, said+asBob.stdout+asBob.stderr+pl.checkRestart(gw))
}

// checkAudit asks the program what its log says of host calls.
func (pl *place) checkAudit(o *origin) {
	pl.t.Helper()
	var denied logged
	for _, e := range pl.log() {
		if e.Event == "host_call" && slices.Contains(e.Reasons, "not there") {
			denied = e
		}
	}
	asked := "local__ask: sandbox/http GET " + o.url + "/v1/forbidden"
	for _, args := range [][]string{{"--denied"}, {"--call", denied.Parent}} {
		row := ""
		for line := range strings.Lines(pl.must(append([]string{"audit"}, args...)...)) {
			if strings.Contains(line, asked) {
				row = strings.TrimSpace(line)
			}
		}
		if !strings.Contains(row, "refused_authorize") || !strings.Contains(row, "not there") || !strings.HasSuffix(row, denied.Parent) {
			pl.t.Errorf("audit %q does not tell %q: %q", args, asked, row)
		}
	}
	all := pl.must("audit", "--call", denied.Parent)
	if got := strings.Count(all, denied.Parent); got != 2 || !strings.Contains(all, "tool_error") {
		pl.t.Errorf("audit --call has %d rows, want the host call and the call:\n%s", got, all)
	}
	if got := strings.Count(pl.must("audit", "--json", "--call", denied.Parent), "\n"); got != 3 {
		pl.t.Errorf("audit --json --call has %d records, want granted, host_call and done", got)
	}
	for _, want := range []string{"sandbox/kv get forbidden", "sandbox/file read " + pl.file("docs/private/b.txt"), "sandbox/secret API " + o.url} {
		holds(pl.t, pl.must("audit", "--denied"), want)
	}
}

// checkRestart ends the gateway and starts another, which has the values that
// tools kept. It returns what both have logged.
func (pl *place) checkRestart(gw *process) string {
	pl.t.Helper()
	gw.signal(syscall.SIGTERM)
	if code := gw.wait(); code != 0 {
		pl.t.Errorf("exit %d, want 0", code)
	}
	logged := gw.stderr.String()
	holds(pl.t, logged, `text="into the log"`)
	if len(logged) == maxTail {
		pl.t.Error("the beginning of what was logged is lost")
	}
	next := pl.serve()
	holds(pl.t, mustWire(pl.t, next.url).mustCall(pl.t, "local__ask", `{"do":"kv","request":{"op":"get","key":"k"}}`).text(), `"value":"kept"`)
	return logged + next.stderr.String()
}

// secretNowhere looks for the secret in what clients were answered and the
// programs have said, in the log, and in what the gateway keeps.
func (pl *place) secretNowhere(secret, said string) {
	pl.t.Helper()
	if strings.Contains(said, secret) {
		pl.t.Error("the secret was told")
	}
	files := []string{pl.file("state/audit.jsonl")}
	err := filepath.WalkDir(pl.file("state"), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 2 {
		pl.t.Fatalf("files %q, %v", files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), secret) {
			pl.t.Errorf("%s holds the secret (%v)", f, err)
		}
	}
}

// testTraps has calls exceed what they may use. Each is told by its own code, and
// the next call is as any other.
func testTraps(t *testing.T, p *program) {
	o := newOrigin(t)
	pl := p.asker(t, o, rand.Text())
	pl.must("grant", "local__ask")
	pl.must("grant", "small__ask")
	w := mustWire(t, pl.serveModules().url)
	for _, tt := range []struct{ name, tool, args, code, says string }{
		{"fuel", "local__ask", `{"do":"env","starve":true}`, "trap_fuel", "1000 instructions"},
		{"time", "local__ask", o.request("/v1/slow", "", `,"hurry":true`), "trap_deadline", "300ms"},
		{"memory", "small__ask", pl.request("read", "docs/large.txt", ""), "trap_memory", "4194304 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := w.mustCall(t, tt.tool, tt.args)
			e := pl.lastDone(tt.tool)
			if e.Code != tt.code || !strings.Contains(e.Error, tt.says) {
				t.Errorf("recorded as %s, want %s and %q", e.Raw, tt.code, tt.says)
			}
			if code(a) != tt.code {
				t.Errorf("answered %q, want %s", a.text(), tt.code)
			}
			holds(t, w.mustCall(t, tt.tool, pl.request("read", "docs/a.txt", "")).text(), "a text")
		})
	}
	pl.checkCalls()
}

// testRepoScan looks for repositories under a folder that the embedded module is
// granted.
func testRepoScan(t *testing.T, p *program) {
	toolchain.Need(t, "git")
	pl := p.sandboxed(t, `tools: {repos: {module: "embedded:files", grant: {dirs: [{path: src}]}}}`)
	pl.write("src/.keep", "")
	one, two := pl.file("src/deep/one"), pl.file("src/two")
	for _, args := range [][]string{
		{"init", "-q", "-b", "trunk", one},
		{"-C", one, "-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "commit", "-q", "--allow-empty", "-m", "first"},
		{"-C", one, "worktree", "add", "-q", "-b", "branch", two},
		{"init", "-q", pl.file("outside")},
	} {
		if o := pl.finish("git", args...); o.code != 0 {
			t.Fatalf("git %q: %s", args, o.stderr)
		}
	}
	w := mustWire(t, pl.serveModules().url)
	args := fmt.Sprintf(`{"roots":[%q,%q]}`, pl.file("src"), pl.file("outside"))
	o := pl.run("call", "local__repo_scan", args)
	remedy := "wasmgate grant local__repo_scan"
	if o.code != 3 || !strings.Contains(o.stderr, "to allow it: "+remedy+" --config "+pl.file("wasmgate.yaml")) {
		t.Errorf("before the grant: exit %d, want 3 and a remedy: %s", o.code, o.stderr)
	}
	if e := pl.lastDone("local__repo_scan"); e.Remedy != remedy || e.Code != "refused_authorize" {
		t.Errorf("recorded as %s", e.Raw)
	}
	pl.must("grant", "local__repo_scan")
	type repository struct{ Path, Kind, Branch, Main string }
	var found struct {
		Repositories []repository
		Errors       []struct{ Root string }
	}
	answer := w.mustCall(t, "local__repo_scan", args).text()
	if err := json.Unmarshal([]byte(answer), &found); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	want := []repository{{one, "main", "trunk", ""}, {two, "worktree", "branch", one}}
	if diff := cmp.Diff(want, found.Repositories); diff != "" {
		t.Errorf("repositories (-want +got):\n%s", diff)
	}
	if len(found.Errors) != 1 || found.Errors[0].Root != pl.file("outside") {
		t.Errorf("a folder that is not granted: %s", answer)
	}
	found.Repositories, found.Errors = nil, nil
	if answer = w.mustCall(t, "local__repo_scan", `{}`).text(); json.Unmarshal([]byte(answer), &found) != nil || !cmp.Equal(want, found.Repositories) || len(found.Errors) != 0 {
		t.Errorf("all that is granted: %s", answer)
	}
	if listed := pl.must("tools", "--json"); !strings.Contains(listed, "Directories that are granted to it: ") || !strings.Contains(listed, pl.file("src")) {
		t.Errorf("its description names no folder: %s", listed)
	}
	if kinds := pl.checkCalls(); kinds["sandbox/file allow"] == 0 || len(kinds) != 1 {
		t.Errorf("host calls %v, want reads that were allowed", kinds)
	}
}

// component begins as a WebAssembly component does, in the place of a module.
const component = "\x00asm\x0d\x00\x01\x00"

// testWrongModules has modules that cannot be used. What the configuration itself shows
// keeps the gateway from starting, with one line that says what to do; any other module
// is left out alone, and a server is faulted alone.
func testWrongModules(t *testing.T, p *program) {
	none := strings.Repeat("0", 64)
	tests := map[string]struct {
		module, says, todo string
		early              bool // found in the configuration itself
	}{
		"it imports what is not granted":   {"module: asker.wasm", `"wasmgate.http", "wasmgate.kv"`, "tools.NAME.grant.http and tools.NAME.grant.kv", false},
		"its digest is another":            {"module: asker.wasm, sha256: '" + none + "'", "has SHA-256 ", "write that as its sha256", false},
		"it is a component":                {"module: component.wasm", "component, not a core module", "wasm32-wasip1", false},
		"it is not there":                  {"module: none.wasm", "tools.x.module", `"none.wasm" does not exist`, true},
		"it is no module":                  {"module: text.wasm", "not a WebAssembly module", "does not begin with", false},
		"its manifest is none":             {"module: listed.wasm", "listed.yaml:1", `tool: unknown key; did you mean "tools"?`, false},
		"it may reach this machine":        {"module: asker.wasm, grant: {kv: true, http: [{origin: 'http://127.0.0.1:1'}]}", "loopback", "private: true", false},
		"it is granted an unknown secret":  {"module: asker.wasm, grant: {secrets: [API]}", "tools.x.grant.secrets", `"API" is none of the secrets`, true},
		"it is in a registry, by its name": {"module: 'oci://example.com/a:latest'", "names no digest", "@sha256:", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pl := p.sandboxed(t, "tools: {x: {"+tt.module+"}}\n", askerModule)
			pl.write("component.wasm", component)
			pl.write("text.wasm", "no module")
			pl.write("listed.wasm", "")
			pl.write("listed.yaml", "tool: []\n")
			if !tt.early {
				o := pl.run("status", "--check")
				if o.code != 3 || !strings.Contains(o.stderr, "wasmgate: faulted: x\n") {
					t.Errorf("status --check: exit %d:\n%s", o.code, o.stderr)
				}
				holds(t, o.stdout, "problem: module x: ")
				holds(t, o.stdout, tt.says)
				holds(t, o.stdout, tt.todo)
				o = pl.run("call", "local__ask", "{}")
				if o.code != 3 {
					t.Errorf("call: exit %d", o.code)
				}
				holds(t, strings.ReplaceAll(o.stderr, `\"`, `"`), tt.says) // quoted, by the log
				return
			}
			for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"call", "local__ask", "{}"}} {
				o := pl.run(args...)
				if o.code != 2 || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "wasmgate: ") {
					t.Errorf("%s: exit %d, want 2 and one line:\n%s", args[0], o.code, o.stderr)
				}
				holds(t, o.stderr, tt.says)
				holds(t, o.stderr, tt.todo)
			}
		})
	}
	t.Run("of servers, each is faulted alone", func(t *testing.T) { checkWrongServers(t, p, none) })
}

func checkWrongServers(t *testing.T, p *program, none string) {
	good := &stub{tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, answer: answerFine}
	pl := p.sandboxed(t, "servers:\n  good: {url: "+good.start(t)+"}\n"+
		"  asks: {module: asker.wasm}\n  other: {module: asker.wasm, sha256: '"+none+"'}\n"+
		"  component: {module: component.wasm}\n  text: {module: text.wasm}\n", askerModule)
	pl.write("component.wasm", component)
	pl.write("text.wasm", "no module")
	pl.must("grant", "good__echo")
	gw := pl.serveModules()
	if a := mustWire(t, gw.url).mustCall(t, "good__echo", "{}"); a.text() != "fine" {
		t.Errorf("the good server: %s", a.text())
	}
	var status struct {
		Servers []struct{ Server, Phase, Fault, Error string }
	}
	if err := json.Unmarshal([]byte(pl.must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"asks": "a server has functions of wasi_snapshot_preview1 alone", "other": "write that as its sha256",
		"component": "wasm32-wasip1", "text": "not a WebAssembly module",
	}
	for _, s := range status.Servers {
		if says, wrong := want[s.Server]; wrong {
			if s.Phase != "faulted" || !strings.Contains(s.Error, says) || strings.Contains(s.Error, "\n") {
				t.Errorf("server %s is %s: %q, want %q", s.Server, s.Phase, s.Error, says)
			}
			delete(want, s.Server)
		} else if s.Phase != "ready" {
			t.Errorf("server %s is %s: %s", s.Server, s.Phase, s.Error)
		}
	}
	if len(want) > 0 {
		t.Errorf("status leaves out %v", want)
	}
	if code, _ := get(t, strings.TrimSuffix(gw.url, "/mcp")+"/healthz"); code != http.StatusOK {
		t.Errorf("healthz = %d", code)
	}
}
