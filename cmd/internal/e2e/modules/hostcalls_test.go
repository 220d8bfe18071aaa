//go:build unix

package modules

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

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
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
func asker(t *testing.T, p *e2e.Program, o *origin, secret string) *e2e.Place {
	t.Helper()
	pl := sandboxed(t, p, fmt.Sprintf(`
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
`, secret, o.url), e2e.Asker)
	pl.Write("docs/a.txt", "a text")
	pl.Write("docs/private/b.txt", "another")
	pl.Write("docs/large.txt", strings.Repeat("large ", 1<<20))
	pl.Write("out/.keep", "")
	pl.Write("policies/asker.rego", strings.ReplaceAll(askerPolicy, "OUT", pl.File("out")))
	return pl
}

// request returns the arguments that have the guest make a request. In has further members of the
// request, and the last parameter further arguments, each written with a comma before it.
func (o *origin) request(path, in, beside string) string {
	return fmt.Sprintf(`{"do":"http","request":{"url":"%s%s"%s}%s}`, o.url, path, in, beside)
}

func request(pl *e2e.Place, do, file, beside string) string {
	return fmt.Sprintf(`{"do":%q,"path":%q%s}`, do, pl.File(file), beside)
}

const withKey = `,"headers":{"Authorization":["{{secret:API}}"]}`

// testHostCalls lets a guest ask its host for what it is granted, for what it is
// not, for what a policy denies, and for what the decision on a call leaves out.
func testHostCalls(t *testing.T, p *e2e.Program) {
	o, secret := newOrigin(t), rand.Text()
	pl := asker(t, p, o, secret)
	gw := pl.ServeModules()
	w := e2e.MustWire(t, gw.URL)
	if a := w.MustCall(t, "local__ask", `{"do":"env"}`); a.Error == nil {
		t.Errorf("before a grant: %s", a.Result)
	}
	pl.Must("grant", "local__ask", "--to", "*")
	said := steps(w, t, []sandboxStep{
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
		{"a file", "local__ask", request(pl, "read", "docs/a.txt", ""), "a text"},
		{"a file that the policy denies", "local__ask", request(pl, "read", "docs/private/b.txt", ""), "ermission denied"},
		{"a file outside", "local__ask", request(pl, "read", "wasmgate.yaml", ""), "open "},
		{"a write where reading is granted", "local__ask", request(pl, "write", "docs/new", ""), "open "},
		{"a write", "local__ask", request(pl, "write", "out/new", `,"text":"written"`), "{}"},
		{"a read in a narrowed call", "local__ask", request(pl, "read", "docs/a.txt", `,"narrow":true`), "ermission denied"},
		{"a read of what is left", "local__ask", request(pl, "read", "out/new", `,"narrow":true`), "written"},
		{"its configuration", "local__ask", `{"do":"env"}`, `["GREETING=hello"]`},
		{"a log", "local__ask", `{"do":"log","text":"into the log"}`, "{}"},
	})
	asBob := pl.Run("call", "local__ask", o.request("/v1/x", withKey, ""), "--as", "bob")
	if asBob.Code != 1 || !strings.Contains(asBob.Stdout, "denied") {
		t.Errorf("a secret that the policy denies: exit %d, %s%s", asBob.Code, asBob.Stdout, asBob.Stderr)
	}
	if diff := cmp.Diff([]string{"", "Bearer " + secret, ""}, o.seen()); diff != "" {
		t.Errorf("the origin was sent these keys (-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(pl.File("out/new")); err != nil || string(b) != "written" {
		t.Errorf("the file has %q, %v", b, err)
	}
	want := map[string]int{
		"sandbox/http allow": 5, "sandbox/http deny": 7, "sandbox/secret allow": 1, "sandbox/secret deny": 1,
		"sandbox/kv allow": 1, "sandbox/kv deny": 2, "sandbox/file allow": 3, "sandbox/file deny": 2,
	}
	if diff := cmp.Diff(want, checkCalls(pl)); diff != "" {
		t.Errorf("host calls in the log (-want +got):\n%s", diff)
	}
	checkAudit(pl, o)
	secretNowhere(pl, secret, said+asBob.Stdout+asBob.Stderr+checkRestart(pl, gw))
}

// checkAudit asks the program what its log says of host calls.
func checkAudit(pl *e2e.Place, o *origin) {
	pl.T.Helper()
	var denied e2e.Logged
	for _, e := range pl.Log() {
		if e.Event == "host_call" && slices.Contains(e.Reasons, "not there") {
			denied = e
		}
	}
	asked := "local__ask: sandbox/http GET " + o.url + "/v1/forbidden"
	for _, args := range [][]string{{"--denied"}, {"--call", denied.Parent}} {
		row := ""
		for line := range strings.Lines(pl.Must(append([]string{"audit"}, args...)...)) {
			if strings.Contains(line, asked) {
				row = strings.TrimSpace(line)
			}
		}
		if !strings.Contains(row, "refused_authorize") || !strings.Contains(row, "not there") || !strings.HasSuffix(row, denied.Parent) {
			pl.T.Errorf("audit %q does not tell %q: %q", args, asked, row)
		}
	}
	all := pl.Must("audit", "--call", denied.Parent)
	if got := strings.Count(all, denied.Parent); got != 2 || !strings.Contains(all, "tool_error") {
		pl.T.Errorf("audit --call has %d rows, want the host call and the call:\n%s", got, all)
	}
	if got := strings.Count(pl.Must("audit", "--json", "--call", denied.Parent), "\n"); got != 3 {
		pl.T.Errorf("audit --json --call has %d records, want granted, host_call and done", got)
	}
	for _, want := range []string{"sandbox/kv get forbidden", "sandbox/file read " + pl.File("docs/private/b.txt"), "sandbox/secret API " + o.url} {
		e2e.Holds(pl.T, pl.Must("audit", "--denied"), want)
	}
}

// checkRestart ends the gateway and starts another, which has the values that
// tools kept. It returns what both have logged.
func checkRestart(pl *e2e.Place, gw *e2e.Process) string {
	pl.T.Helper()
	gw.Signal(syscall.SIGTERM)
	if code := gw.Wait(); code != 0 {
		pl.T.Errorf("exit %d, want 0", code)
	}
	logged := gw.Stderr.String()
	e2e.Holds(pl.T, logged, `text="into the log"`)
	if len(logged) == e2e.MaxTail {
		pl.T.Error("the beginning of what was logged is lost")
	}
	next := pl.Serve()
	e2e.Holds(pl.T, e2e.MustWire(pl.T, next.URL).MustCall(pl.T, "local__ask", `{"do":"kv","request":{"op":"get","key":"k"}}`).Text(), `"value":"kept"`)
	return logged + next.Stderr.String()
}

// secretNowhere looks for the secret in what clients were answered and the
// programs have said, in the log, and in what the gateway keeps.
func secretNowhere(pl *e2e.Place, secret, said string) {
	pl.T.Helper()
	if strings.Contains(said, secret) {
		pl.T.Error("the secret was told")
	}
	files := []string{pl.File("state/audit.jsonl")}
	err := filepath.WalkDir(pl.File("state"), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 2 {
		pl.T.Fatalf("files %q, %v", files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), secret) {
			pl.T.Errorf("%s holds the secret (%v)", f, err)
		}
	}
}

// testTraps has calls exceed what they may use. Each has its own code, and the next call is as any
// other.
func testTraps(t *testing.T, p *e2e.Program) {
	o := newOrigin(t)
	pl := asker(t, p, o, rand.Text())
	pl.Must("grant", "local__ask")
	pl.Must("grant", "small__ask")
	w := e2e.MustWire(t, pl.ServeModules().URL)
	for _, tt := range []struct{ name, tool, args, code, says string }{
		{"fuel", "local__ask", `{"do":"env","starve":true}`, "trap_fuel", "1000 instructions"},
		{"time", "local__ask", o.request("/v1/slow", "", `,"hurry":true`), "trap_deadline", "300ms"},
		{"memory", "small__ask", request(pl, "read", "docs/large.txt", ""), "trap_memory", "4194304 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := w.MustCall(t, tt.tool, tt.args)
			e := pl.LastDone(tt.tool)
			if e.Code != tt.code || !strings.Contains(e.Error, tt.says) {
				t.Errorf("recorded as %s, want %s and %q", e.Raw, tt.code, tt.says)
			}
			if e2e.Code(a) != tt.code {
				t.Errorf("answered %q, want %s", a.Text(), tt.code)
			}
			e2e.Holds(t, w.MustCall(t, tt.tool, request(pl, "read", "docs/a.txt", "")).Text(), "a text")
		})
	}
	checkCalls(pl)
}

// testRepoScan looks for repositories under a folder that the embedded module is
// granted.
func testRepoScan(t *testing.T, p *e2e.Program) {
	toolchain.Need(t, "git")
	pl := sandboxed(t, p, `tools: {repos: {module: "embedded:files", grant: {dirs: [{path: src}]}}}`)
	pl.Write("src/.keep", "")
	one, two := pl.File("src/deep/one"), pl.File("src/two")
	for _, args := range [][]string{
		{"init", "-q", "-b", "trunk", one},
		{"-C", one, "-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "commit", "-q", "--allow-empty", "-m", "first"},
		{"-C", one, "worktree", "add", "-q", "-b", "branch", two},
		{"init", "-q", pl.File("outside")},
	} {
		if o := pl.Finish("git", args...); o.Code != 0 {
			t.Fatalf("git %q: %s", args, o.Stderr)
		}
	}
	w := e2e.MustWire(t, pl.ServeModules().URL)
	args := fmt.Sprintf(`{"roots":[%q,%q]}`, pl.File("src"), pl.File("outside"))
	o := pl.Run("call", "local__repo_scan", args)
	remedy := "wasmgate grant local__repo_scan"
	if o.Code != 3 || !strings.Contains(o.Stderr, "to allow it: "+remedy+" --config "+pl.File("wasmgate.yaml")) {
		t.Errorf("before the grant: exit %d, want 3 and a remedy: %s", o.Code, o.Stderr)
	}
	if e := pl.LastDone("local__repo_scan"); e.Remedy != remedy || e.Code != "refused_authorize" {
		t.Errorf("recorded as %s", e.Raw)
	}
	pl.Must("grant", "local__repo_scan")
	type repository struct{ Path, Kind, Branch, Main string }
	var found struct {
		Repositories []repository
		Errors       []struct{ Root string }
	}
	answer := w.MustCall(t, "local__repo_scan", args).Text()
	if err := json.Unmarshal([]byte(answer), &found); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	want := []repository{{one, "main", "trunk", ""}, {two, "worktree", "branch", one}}
	if diff := cmp.Diff(want, found.Repositories); diff != "" {
		t.Errorf("repositories (-want +got):\n%s", diff)
	}
	if len(found.Errors) != 1 || found.Errors[0].Root != pl.File("outside") {
		t.Errorf("a folder that is not granted: %s", answer)
	}
	found.Repositories, found.Errors = nil, nil
	if answer = w.MustCall(t, "local__repo_scan", `{}`).Text(); json.Unmarshal([]byte(answer), &found) != nil || !cmp.Equal(want, found.Repositories) || len(found.Errors) != 0 {
		t.Errorf("all that is granted: %s", answer)
	}
	if listed := pl.Must("tools", "--json"); !strings.Contains(listed, "Directories that are granted to it: ") || !strings.Contains(listed, pl.File("src")) {
		t.Errorf("its description names no folder: %s", listed)
	}
	if kinds := checkCalls(pl); kinds["sandbox/file allow"] == 0 || len(kinds) != 1 {
		t.Errorf("host calls %v, want reads that were allowed", kinds)
	}
}

// component begins as a WebAssembly component does, instead of a module.
const component = "\x00asm\x0d\x00\x01\x00"

// testWrongModules has modules that cannot be used. A fault that the configuration itself shows
// keeps the gateway from starting, with one line that says what to do; any other faulty module is
// left out, and a server with one is faulted, without effect on others.
func testWrongModules(t *testing.T, p *e2e.Program) {
	none := strings.Repeat("0", 64)
	tests := map[string]struct {
		module, says, todo string
		early              bool // found in the configuration itself
	}{
		"it imports what is not granted":   {"module: asker.wasm", `"wasmgate.http", "wasmgate.kv"`, "tools.NAME.grant.http and tools.NAME.grant.kv", false},
		"its digest is another":            {"module: asker.wasm, sha256: '" + none + "'", "has SHA-256 ", "write that as its sha256", false},
		"it is a component":                {"module: component.wasm", "component, not a core module", "wasm32-wasip1", false},
		"it is not there":                  {"module: none.wasm", "tools.x.module", `"none.wasm" does not exist`, true},
		"it is not a module":               {"module: text.wasm", "not a WebAssembly module", "does not begin with", false},
		"its manifest is none":             {"module: listed.wasm", "listed.yaml:1", `tool: unknown key; did you mean "tools"?`, false},
		"it may reach this machine":        {"module: asker.wasm, grant: {kv: true, http: [{origin: 'http://127.0.0.1:1'}]}", "loopback", "private: true", false},
		"it is granted an unknown secret":  {"module: asker.wasm, grant: {secrets: [API]}", "tools.x.grant.secrets", `no secret is named "API"`, true},
		"it is in a registry, by its name": {"module: 'oci://example.com/a:latest'", "has no digest", "@sha256:", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pl := sandboxed(t, p, "tools: {x: {"+tt.module+"}}\n", e2e.Asker)
			pl.Write("component.wasm", component)
			pl.Write("text.wasm", "no module")
			pl.Write("listed.wasm", "")
			pl.Write("listed.yaml", "tool: []\n")
			if !tt.early {
				o := pl.Run("status", "--check")
				if o.Code != 3 || !strings.Contains(o.Stderr, "wasmgate: faulted: x\n") {
					t.Errorf("status --check: exit %d:\n%s", o.Code, o.Stderr)
				}
				e2e.Holds(t, o.Stdout, "problem: module x: ")
				e2e.Holds(t, o.Stdout, tt.says)
				e2e.Holds(t, o.Stdout, tt.todo)
				o = pl.Run("call", "local__ask", "{}")
				if o.Code != 3 {
					t.Errorf("call: exit %d", o.Code)
				}
				e2e.Holds(t, strings.ReplaceAll(o.Stderr, `\"`, `"`), tt.says) // quoted, by the log
				return
			}
			for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"call", "local__ask", "{}"}} {
				o := pl.Run(args...)
				if o.Code != 2 || strings.Count(o.Stderr, "\n") != 1 || !strings.HasPrefix(o.Stderr, "wasmgate: ") {
					t.Errorf("%s: exit %d, want 2 and one line:\n%s", args[0], o.Code, o.Stderr)
				}
				e2e.Holds(t, o.Stderr, tt.says)
				e2e.Holds(t, o.Stderr, tt.todo)
			}
		})
	}
	t.Run("of servers, each is faulted alone", func(t *testing.T) { checkWrongServers(t, p, none) })
}

func checkWrongServers(t *testing.T, p *e2e.Program, none string) {
	good := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	pl := sandboxed(t, p, "servers:\n  good: {url: "+good.Start(t)+"}\n"+
		"  asks: {module: asker.wasm}\n  other: {module: asker.wasm, sha256: '"+none+"'}\n"+
		"  component: {module: component.wasm}\n  text: {module: text.wasm}\n", e2e.Asker)
	pl.Write("component.wasm", component)
	pl.Write("text.wasm", "no module")
	pl.Must("grant", "good__echo")
	gw := pl.ServeModules()
	if a := e2e.MustWire(t, gw.URL).MustCall(t, "good__echo", "{}"); a.Text() != "fine" {
		t.Errorf("the good server: %s", a.Text())
	}
	var status struct {
		Servers []struct{ Server, Phase, Fault, Error string }
	}
	if err := json.Unmarshal([]byte(pl.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"asks": "a server can have functions only of wasi_snapshot_preview1", "other": "write that as its sha256",
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
	if code, _ := e2e.Get(t, strings.TrimSuffix(gw.URL, "/mcp")+"/healthz"); code != http.StatusOK {
		t.Errorf("healthz = %d", code)
	}
}
