package config_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/dirs"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// environment answers like os.LookupEnv.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// options are those of a person who lives in home.
func options(home string) config.Options {
	return config.Options{
		Getenv: environment(map[string]string{"TICKETS_TOKEN": "t0p", "EMPTY": "", "LINES": "a\r\nb", "LONG": "90h", "YES": "true", "FIVE": "5"}),
		Dirs:   dirs.DirsOf("linux", home, func(string) string { return "" }),
	}
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tools", "text.wasm"), "")
	write(t, filepath.Join(dir, "policies", "a.rego"), "")
	file := write(t, filepath.Join(dir, "wasmgate.yaml"), `
version: 1
listen: localhost:0
principals: {alice: {roles: [dev]}, local: {}}
servers:
  zeta:
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem@2026.8.31", 8080, true, "$$HOME", a$b]
    env: {LOG: "1", DEBUG: true, TOKEN: "x-${env:TICKETS_TOKEN}-${NONE:-}"}
    cwd: srv
  alpha:
    url: https://example.com/mcp?k=${TICKETS_TOKEN}
    transport: sse
    headers: {Authorization: "Bearer ${TICKETS_TOKEN}"}
    timeout: 1m30s
    timeouts: {get: 2s, "search_*": 5m}
    retry: idempotent
    retries: 3
    retry_wait: 500ms
    sessions: shared
    replay: live
    health: 1m
    concurrent: 3
    enabled: ${YES}
    prefix: false
    schema: normalized
    output: warn
    sanitize: html
  local-bin:
    command: ./bin/server
    health: off
    enabled: false
    env: {A: "${NOT_SET_AND_NOT_NEEDED}"}
    sanitize: {profile: strict}
tools:
  text: {module: tools/text.wasm, sha256: "`+strings.Repeat("ab", 32)+`", limits: {timeout: 2s, memory: 64MiB}}
  more: {module: tools/text.wasm, server: extra}
  fetch:
    module: oci://registry.example.com:5000/tools/fetch@sha256:`+strings.Repeat("cd", 32)+`
    isolation: session
    config: {region: eu, retries: 3, key: "${TICKETS_TOKEN}"}
    grant:
      http:
        - {origin: "https://api.example.com", methods: [GET, POST], path: /v1/}
        - {origin: "http://[::1]:8080", private: true}
      dirs: [{path: data, as: /data}, {path: "/srv/out/", write: true}]
      secrets: [API]
      kv: true
    limits: {timeout: 1s, fuel: 5, memory: 64KiB, output: 1MiB, log: 4KiB, host_calls: 20, concurrent: 2, files_bytes: 1GiB}
secrets:
  API: {value: "${TICKETS_TOKEN}", origin: "https://api.example.com"}
  SPARE: {value: 12345678, origin: "https://other.example.com:8443"}
policy: {packs: [], paths: [policies/], data: {grants: g.yaml, labels: policies}, timeout: 20ms}
sanitize: {profile: strict, tools: {"zeta__*": off, alpha__get: html}, mime: {text/html: html, "image/*": off}}
pins: {mode: strict, lockfile: pins/team.lock, tls_key: true}
approvals: {channels: [cli], hold: 5s, expire: 1h}
sessions: {scope: connection, ttl: 2h, trust_prompt: true}
audit: {path: /var/log/a.jsonl, record: full, sync: always, max_size: 1GiB, keep: "${FIVE}", hold: 30d strict, hard_max: 6GiB}
limits: {body: 1MiB, result: 2 MiB, concurrent: 8, session: 4, tools: {zeta__x: 1, "zeta__*": 2}}
http: {origins: ["https://app.example.com"], hosts: ["tools.example.com:8443"]}
log: {level: debug, format: json}
server_info: {name: tools.example.com, version: "7", description: What the office has}
state: /var/lib/wasmgate
`)
	got, err := config.Load(file, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Drain: config.DefaultDrain, ServerInfo: config.ServerInfo{Name: "tools.example.com", Version: "7", Description: "What the office has"},
		File: file, Listen: []string{"localhost:0"}, Auth: config.Auth{Local: true},
		Principals: []config.Principal{{ID: "alice", Roles: []string{"dev"}}, {ID: "local"}},
		Servers: []config.Server{
			{
				ID: "zeta", Command: "npx", Cwd: filepath.Join(dir, "srv"), Transport: "auto", Timeout: 5 * time.Minute,
				Args:    []string{"-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "8080", "true", "$HOME", "a$b"},
				Written: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "8080", "true", "$$HOME", "a$b"},
				Env:     map[string]config.Secret{"LOG": "1", "DEBUG": "true", "TOKEN": "x-t0p-"}, Enabled: true, Prefix: true,
				Schema: "declared", Output: "enforce",
			},
			{
				ID: "alpha", URL: "https://example.com/mcp?k=t0p", Transport: "sse", Timeout: 90 * time.Second, Concurrent: 3,
				Timeouts: []config.ToolTimeout{{Pattern: "get", Timeout: 2 * time.Second}, {Pattern: "search_*", Timeout: 5 * time.Minute}}, Sessions: "shared", Retry: "idempotent", Retries: 3, RetryWait: 500 * time.Millisecond, Replay: "live", Health: time.Minute,
				Headers: map[string]config.Secret{"Authorization": "Bearer t0p"}, Enabled: true,
				Schema: "normalized", Output: "warn", Sanitize: "html",
			},
			{
				ID: "local-bin", Command: filepath.Join(dir, "bin/server"), Written: []string{"./bin/server"}, Transport: "auto", Timeout: 5 * time.Minute, Health: config.HealthOff, Prefix: true,
				Env: map[string]config.Secret{"A": ""}, Schema: "declared", Output: "enforce", Sanitize: "strict",
			},
		},
		Tools: []config.Module{
			{
				ID: "text", Path: filepath.Join(dir, "tools/text.wasm"), SHA256: strings.Repeat("ab", 32), Server: "local",
				ModuleLimits: config.ModuleLimits{Timeout: 2 * time.Second, Memory: 64 << 20},
			},
			{ID: "more", Path: filepath.Join(dir, "tools/text.wasm"), Server: "extra"},
			{
				ID: "fetch", Ref: "oci://registry.example.com:5000/tools/fetch@sha256:" + strings.Repeat("cd", 32), Server: "local",
				Grant: config.ModuleGrant{
					HTTP: []config.HTTPGrant{
						{Origin: "https://api.example.com", Methods: []string{"GET", "POST"}, Path: "/v1/"},
						{Origin: "http://[::1]:8080", Methods: []string{"GET", "HEAD"}, Path: "/", Private: true},
					},
					Dirs:    []config.DirGrant{{Path: filepath.Join(dir, "data"), As: "/data"}, {Path: "/srv/out", Write: true}},
					Secrets: []string{"API"}, KV: true,
				},
				Config:    map[string]config.Secret{"region": "eu", "retries": "3", "key": "t0p"},
				Isolation: "session",
				ModuleLimits: config.ModuleLimits{
					Timeout: time.Second, Fuel: 5, Memory: 64 << 10, Output: 1 << 20, Log: 4 << 10, HostCalls: 20, Concurrent: 2, FilesBytes: 1 << 30,
				},
			},
		},
		Secrets: []config.BoundSecret{
			{Name: "API", Value: "t0p", Origin: "https://api.example.com"},
			{Name: "SPARE", Value: "12345678", Origin: "https://other.example.com:8443"},
		},
		Policy:    config.Policy{Packs: []string{}, Paths: []string{filepath.Join(dir, "policies")}, Grants: filepath.Join(dir, "g.yaml"), Labels: filepath.Join(dir, "policies"), Timeout: 20 * time.Millisecond},
		Pins:      config.Pins{Mode: "strict", Lockfile: filepath.Join(dir, "pins/team.lock"), TLSKey: true},
		Approvals: config.Approvals{Channels: []string{"cli"}, Hold: 5 * time.Second, Expire: time.Hour},
		Sessions:  config.Sessions{Scope: "connection", TTL: 2 * time.Hour, TrustPrompt: true},
		Jobs:      config.Jobs{Tasks: true, Keep: 24 * time.Hour, Max: 10_000, MaxSize: 256 << 20},
		Catalog:   config.Catalog{Mode: "off"},
		Sanitize: config.Sanitize{
			Profile: "strict", Tools: []config.Rule{{"zeta__*", "off"}, {"alpha__get", "html"}},
			MIME: []config.Rule{{"text/html", "html"}, {"image/*", "off"}},
		},
		Audit:     config.Audit{Path: "/var/log/a.jsonl", Record: "full", Sync: "always", MaxSize: 1 << 30, Keep: 5, Hold: 30 * 24 * time.Hour, Strict: true, HardMax: 6 << 30},
		Limits:    config.Limits{Body: 1 << 20, Result: 2 << 20, Concurrent: 8, Session: 4, Tools: []config.ToolLimit{{Pattern: "zeta__x", Concurrent: 1}, {Pattern: "zeta__*", Concurrent: 2}}},
		HTTP:      config.HTTP{Origins: []string{"https://app.example.com"}, Hosts: []string{"tools.example.com:8443"}},
		Log:       config.Log{Level: slog.LevelDebug, Format: "json"},
		Telemetry: config.Telemetry{Metrics: config.Metrics{Series: 2000}, Traces: config.Traces{Refused: true, TrustParent: true}},
		State:     "/var/lib/wasmgate",
	}
	if diff := cmp.Diff(want, got, undeclared); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	config1 := func(grants, log, state string) *config.Config {
		return &config.Config{
			Drain: config.DefaultDrain,
			Auth:  config.Auth{Local: true}, Listen: []string{"127.0.0.1:7420"},
			Policy:   config.Policy{Packs: []string{"grants"}, Grants: grants, Timeout: 50 * time.Millisecond},
			Catalog:  config.Catalog{Mode: "off"},
			Sanitize: config.Sanitize{Profile: "text"},
			Pins:     config.Pins{Mode: "trust-first", Lockfile: filepath.Join(filepath.Dir(grants), "wasmgate.lock")},
			Approvals: config.Approvals{
				Channels: []string{"client", "cli"}, Hold: 55 * time.Second, Expire: 10 * time.Minute,
			},
			Sessions: config.Sessions{Scope: "connection", TTL: time.Hour},
			Jobs:     config.Jobs{Tasks: true, Keep: 24 * time.Hour, Max: 10_000, MaxSize: 256 << 20},
			Audit:    config.Audit{Path: log, Record: "digest", Sync: "group", MaxSize: 100 << 20, Keep: 10, Hold: 168 * time.Hour},
			Limits:   config.Limits{Body: 4 << 20, Result: 10 << 20, Concurrent: 64},
			Log:      config.Log{Format: "text"},

			Telemetry: config.Telemetry{Metrics: config.Metrics{Series: 2000}, Traces: config.Traces{Refused: true, TrustParent: true}},

			State: state,
		}
	}
	t.Run("of an empty file are next to it and in the state folder", func(t *testing.T) {
		for _, content := range []string{"", "# nothing\n", "version: 1\n", "---\nversion: 1\n", "servers:\ntools:\npolicy:\n", "\ufeffversion: 1\r\nservers: {}\r\n"} {
			file := write(t, filepath.Join(dir, "wasmgate.yaml"), content)
			got, err := config.Load(file, options(dir))
			if err != nil {
				t.Fatalf("%q: %v", content, err)
			}
			if !strings.HasPrefix(got.State, filepath.Join(dir, ".local", "state", "wasmgate", "files")) {
				t.Errorf("state is in %s", got.State)
			}
			want := config1(filepath.Join(dir, "grants.yaml"), filepath.Join(got.State, "audit.jsonl"), got.State)
			want.File = file
			if diff := cmp.Diff(want, got, undeclared); diff != "" {
				t.Errorf("%q (-want +got):\n%s", content, diff)
			}
		}
	})
	t.Run("without a file are in the person's folders", func(t *testing.T) {
		d := config.Dirs{Home: "/h", Config: "/h/.config/wasmgate", State: "/h/.local/state/wasmgate"}
		want := config1("/h/.config/wasmgate/grants.yaml", "/h/.local/state/wasmgate/audit.jsonl", "/h/.local/state/wasmgate")
		if diff := cmp.Diff(want, config.Default(d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir()
	if _, err := config.Load(filepath.Join(dir, "none.yaml"), options(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := config.Load(dir, options(dir)); err == nil {
		t.Error("a folder is loaded")
	}
}

// Each bad file gets exactly these problems.
func TestLoadProblems(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"unknown key, near a known one": {"servres: {}\n", `wasmgate.yaml:1: servres: unknown key; did you mean "servers"?`},
		"unknown key, near none":        {"version: 1\nzzzzzzzz: 1\n", `wasmgate.yaml:2: zzzzzzzz: unknown key`},
		"unknown key in a small table":  {"log: {colour: red}\n", `wasmgate.yaml:1: log.colour: unknown key; known are format, level`},
		"unknown key of a server":       {"servers:\n  a:\n    command: x\n    tmeout: 3s\n", `wasmgate.yaml:4: servers.a.tmeout: unknown key; did you mean "timeout"?`},
		"a client's transport":          {"servers:\n  a:\n    command: x\n    type: stdio\n", `wasmgate.yaml:4: servers.a.type: unknown key; leave it out: command or url says how the server is reached; transport: sse is for older servers`},
		"a client's switch":             {"servers:\n  a:\n    command: x\n    disabled: true\n", `wasmgate.yaml:4: servers.a.disabled: unknown key; write enabled: false`},
		"a client's name of a key":      {"servers:\n  a:\n    command: x\n    envs: {A: b}\n", `wasmgate.yaml:4: servers.a.envs: unknown key; here it is called env`},
		"a client's approvals":          {"servers:\n  a:\n    command: x\n    autoApprove: [y]\n", "wasmgate.yaml:4: servers.a.autoApprove: unknown key; what may be called is granted with `wasmgate grant`"},
		"unknown key with odd letters":  {"\"a b\\n\": 1\n", `wasmgate.yaml:1: ["a b\n"]: unknown key`},
		"key given twice":               {"listen: 127.0.0.1:1\nlog: {}\nlisten: 127.0.0.1:2\n", `wasmgate.yaml:3: listen: given twice; first in line 1`},
		"server given twice":            {"servers:\n  a: {command: x}\n  a: {command: y}\n", `wasmgate.yaml:3: servers.a: given twice; first in line 2`},
		"another version":               {"version: 2\n", `wasmgate.yaml:1: version: must be 1, the only version there is`},
		"version in quotes":             {"version: \"1\"\n", `wasmgate.yaml:1: version: must be 1, the only version there is`},
		"a list for a mapping":          {"servers: [a]\n", `wasmgate.yaml:1: servers: must be a mapping, not a list`},
		"a file that is a list":         {"- a\n", `wasmgate.yaml:1: must be a mapping, not a list`},
		"a mapping for a list":          {"policy: {packs: {a: b}}\n", `wasmgate.yaml:1: policy.packs: must be a list, not a mapping`},
		"a number for text":             {"listen: 7420\n", `wasmgate.yaml:1: listen: must be text, not a number: put it in quotes`},
		"nothing for text":              {"listen:\n", `wasmgate.yaml:1: listen: must be text, not nothing`},
		"the key of an mcp.json":        {"mcpServers: {}\n", "wasmgate.yaml:1: mcpServers: is the key of an mcp.json: name the file so, or turn it into servers with `wasmgate add --from FILE`"},
		"two documents":                 {"version: 1\n---\nversion: 1\n", `wasmgate.yaml:3: holds more than one document`},
		"a tag":                         {"version: 1\nlisten: !!str x\n", `wasmgate.yaml:2: tags such as !x are not used here`},
		"a merge key":                   {"servers:\n  a: &a {command: x}\n  b: {<<: *a}\n", `wasmgate.yaml:3: a YAML MergeKey as a key is not used here`},
		"an alias without its anchor":   {"listen: *x\n", `wasmgate.yaml:1: *x is used before &x has been given`},
		"a value that holds itself":     {"servers: &s {a: *s}\n", `wasmgate.yaml:1: *s is used before &s has been given`},
		"a bracket not closed":          {"version: 1\npolicy: [\n", `wasmgate.yaml:2: sequence end token ']' not found`},
		"a variable in a flow":          {"log: {level: ${L}}\n", "wasmgate.yaml:1: ',' or '}' must be specified: inside { } and [ ], ${...} has to be in quotes"},
		"a tab as indent":               {"version: 1\nlog:\n\tlevel: info\n", `wasmgate.yaml:3: found character '	' that cannot start any token`},
		"not UTF-8":                     {"version: 1\nlisten: \xff\n", `wasmgate.yaml:2: not UTF-8`},
		"too deep":                      {"a: " + strings.Repeat("[", 40) + "\n", `wasmgate.yaml:1: nested deeper than 32 levels`},
		"too deep on one line":          {strings.Repeat("- ", 100) + "\n", `wasmgate.yaml:1: nested deeper than 32 levels`},
		"too deep by indents":           {deep(40), `wasmgate.yaml:34: nested deeper than 32 levels`},
		"a bomb of aliases":             {bomb(), `wasmgate.yaml:6: holds more than 200000 values`},
		"too large":                     {strings.Repeat("#", 1<<20+1), `wasmgate.yaml: larger than 1 MiB`},

		"listening for others":       {"listen: 0.0.0.0:7420\n", "wasmgate.yaml:1: listen: \"0.0.0.0:7420\" is reachable from other machines: auth names no way to authenticate: issuers, keys, mtls or proxy, or else listen on 127.0.0.1\nwasmgate.yaml:1: listen: \"0.0.0.0:7420\" is reachable from other machines: tls has no cert and key, and names no proxy that speaks TLS under terminated_by\nwasmgate.yaml:1: listen: \"0.0.0.0:7420\" is reachable from other machines: public_url is not the https URL by which clients reach the gateway"},
		"listening everywhere":       {"listen: :80\n", "wasmgate.yaml:1: listen: \":80\" is reachable from other machines: auth names no way to authenticate: issuers, keys, mtls or proxy, or else listen on 127.0.0.1\nwasmgate.yaml:1: listen: \":80\" is reachable from other machines: tls has no cert and key, and names no proxy that speaks TLS under terminated_by\nwasmgate.yaml:1: listen: \":80\" is reachable from other machines: public_url is not the https URL by which clients reach the gateway"},
		"listening without a port":   {"listen: localhost\n", `wasmgate.yaml:1: listen: "localhost" is not host:port, such as 127.0.0.1:7420, nor unix:PATH`},
		"listening on a large port":  {"listen: localhost:70000\n", `wasmgate.yaml:1: listen: "localhost:70000" has no port from 0 to 65535`},
		"a principal of odd letters": {"principals: {\"role:x\": {}}\n", `wasmgate.yaml:1: principals["role:x"]: a principal is named by letters, digits and . _ @ + -, other bytes as %XX, with TENANT/ in front of one of a tenant`},
		"a role of odd letters":      {"principals: {a: {roles: [x, x, \"y z\"]}}\n", "wasmgate.yaml:1: principals.a.roles[1]: \"x\" is listed twice\n" + `wasmgate.yaml:1: principals.a.roles[2]: "y z" is not a role: letters, digits and . _ -`},

		"a server with capitals":           {"servers:\n  My Server: {command: x}\n", `wasmgate.yaml:2: servers["My Server"]: a server is named with lower-case letters, digits and -, such as "my-server"`},
		"a reserved name":                  {"servers: {jobs: {command: x}}\n", `wasmgate.yaml:1: servers.jobs: is a reserved name: choose another`},
		"neither command nor url":          {"servers:\n  a: {}\n", `wasmgate.yaml:2: servers.a: needs a command, a url, a module, or a folder of skills`},
		"both command and url":             {"servers:\n  a:\n    command: x\n    url: https://h/\n", `wasmgate.yaml:2: servers.a: has both a command and a url: keep one`},
		"arguments of a url":               {"servers:\n  a:\n    url: https://h/\n    args: [x]\n", `wasmgate.yaml:4: servers.a.args: has no effect without a command or a module`},
		"headers of a command":             {"servers:\n  a:\n    command: x\n    headers: {A: b}\n", `wasmgate.yaml:4: servers.a.headers: has no effect without a url`},
		"an empty command":                 {"servers: {a: {command: \"\"}}\n", `wasmgate.yaml:1: servers.a.command: "" is empty`},
		"arguments that are not a list":    {"servers: {a: {command: x, args: -y}}\n", `wasmgate.yaml:1: servers.a.args: must be a list, not text`},
		"an argument that is a list":       {"servers: {a: {command: x, args: [[b]]}}\n", `wasmgate.yaml:1: servers.a.args[0]: must be text, not a list`},
		"an argument with NUL":             {"servers: {a: {command: x, args: [\"a\\0b\"]}}\n", `wasmgate.yaml:1: servers.a.args[0]: holds a NUL character`},
		"a variable with =":                {"servers: {a: {command: x, env: {\"A=B\": c}}}\n", `wasmgate.yaml:1: servers.a.env["A=B"]: "A=B" is not a name of an environment variable: it is empty, or has = or a NUL character`},
		"a URL of another scheme":          {"servers: {a: {url: \"ftp://h/\"}}\n", `wasmgate.yaml:1: servers.a.url: "ftp://h/" does not begin with https:// or http://`},
		"a URL without a host":             {"servers: {a: {url: \"https:///x\"}}\n", `wasmgate.yaml:1: servers.a.url: "https:///x" names no host`},
		"a URL with a password":            {"servers: {a: {url: \"https://u:${TICKETS_TOKEN}@h/\"}}\n", `wasmgate.yaml:1: servers.a.url: "https://u:${TICKETS_TOKEN}@h/" holds a user or password: put it into headers`},
		"a URL that is none":               {"servers: {a: {url: \"https://h:x/\"}}\n", `wasmgate.yaml:1: servers.a.url: "https://h:x/" is not a URL`},
		"an unknown transport":             {"servers: {a: {url: \"https://h/\", transport: streamable_http}}\n", `wasmgate.yaml:1: servers.a.transport: "streamable_http" is not one of auto, http, streamable-http, sse; did you mean "streamable-http"?`},
		"an unknown protocol":              {"servers: {a: {url: \"https://h/\", protocol: \"2026\"}}\n", `wasmgate.yaml:1: servers.a.protocol: "2026" is not one of auto, 2025-11-25, 2026-07-28`},
		"a protocol without its transport": {"servers: {a: {url: \"https://h/\", transport: sse, protocol: \"2026-07-28\"}}\n", `wasmgate.yaml:1: servers.a.protocol: the older HTTP+SSE has no revision 2026-07-28: take another transport`},
		"a header with a line break":       {"servers: {a: {url: \"https://h/\", headers: {X-A: \"a\\r\\nb\"}}}\n", `wasmgate.yaml:1: servers.a.headers.X-A: the value holds a line break or another control character`},
		"a line break by variable":         {"servers: {a: {url: \"https://h/\", headers: {X-A: \"${LINES}\"}}}\n", `wasmgate.yaml:1: servers.a.headers.X-A: the value holds a line break or another control character`},
		"a header with a space":            {"servers: {a: {url: \"https://h/\", headers: {\"X A\": b}}}\n", `wasmgate.yaml:1: servers.a.headers["X A"]: "X A" is not a name of a header`},
		"a header of the transport":        {"servers: {a: {url: \"https://h/\", headers: {mcp-session-id: b}}}\n", `wasmgate.yaml:1: servers.a.headers.mcp-session-id: "mcp-session-id" is set by the transport`},
		"a header in two cases":            {"servers: {a: {url: \"https://h/\", headers: {X-A: b, x-a: c}}}\n", `wasmgate.yaml:1: servers.a.headers.x-a: given twice, in different letter case`},
		"a time without a unit":            {"servers: {a: {command: x, timeout: 30}}\n", `wasmgate.yaml:1: servers.a.timeout: 30 has no unit: write 30s`},
		"a time of zero":                   {"servers: {a: {command: x, timeout: 0s}}\n", `wasmgate.yaml:1: servers.a.timeout: "0s" is not from 1ms to 24h`},
		"a time that is too long":          {"servers: {a: {command: x, timeout: \"${LONG}\"}}\n", `wasmgate.yaml:1: servers.a.timeout: "${LONG}" is not from 1ms to 24h`},
		"a timeout of no tool":             {"servers: {a: {command: x, timeouts: {\"a*b\": 1s}}}\n", `wasmgate.yaml:1: servers.a.timeouts["a*b"]: "a*b" is not the name of a tool as its server has it, or its beginning and *`},
		"too many retries":                 {"servers: {a: {command: x, retries: 11}}\n", `wasmgate.yaml:1: servers.a.retries: "11" is not a whole number from 1 to 10`},
		"a timeout of zero":                {"servers: {a: {command: x, timeouts: {b: 0s}}}\n", `wasmgate.yaml:1: servers.a.timeouts.b: "0s" is not from 1ms to 24h`},
		"a retry that is a number":         {"servers: {a: {command: x, retry: 3}}\n", `wasmgate.yaml:1: servers.a.retry: must be text, not a number: put it in quotes`},
		"a retry that is unknown":          {"servers: {a: {command: x, retry: always}}\n", `wasmgate.yaml:1: servers.a.retry: "always" is not one of never, idempotent`},
		"a ping too often":                 {"servers: {a: {command: x, health: 10ms}}\n", `wasmgate.yaml:1: servers.a.health: "10ms" is not from 1s to 24h`},
		"a time in words":                  {"servers: {a: {command: x, timeout: 3 seconds}}\n", `wasmgate.yaml:1: servers.a.timeout: "3 seconds" is not a duration: write a number and ms, s, m or h, such as 30s`},
		"a flag in words":                  {"servers: {a: {command: x, enabled: yes}}\n", `wasmgate.yaml:1: servers.a.enabled: must be true or false, not text`},
		"a profile that is near":           {"servers: {a: {command: x, sanitize: txt}}\n", `wasmgate.yaml:1: servers.a.sanitize: "txt" is not one of strict, html, text, code, off; did you mean "text"?`},
		"a server that is text":            {"servers: {a: npx}\n", `wasmgate.yaml:1: servers.a: must be a mapping, not text`},
		"a replay that is unknown":         {"servers: {a: {command: x, replay: stub}}\n", `wasmgate.yaml:1: servers.a.replay: "stub" is not one of must_stub, live, pure`},
		"a module that is missing":         {"tools: {t: {module: none.wasm}}\n", `wasmgate.yaml:1: tools.t.module: "none.wasm" does not exist`},
		"a module without a digest":        {"tools: {t: {module: \"oci://h/t:v1\"}}\n", `wasmgate.yaml:1: tools.t.module: "oci://h/t:v1" has no digest, so that its content could change: write oci://registry/repository@sha256:DIGEST`},
		"a module with half a digest":      {"tools: {t: {module: \"oci://h/t@sha256:ab\"}}\n", `wasmgate.yaml:1: tools.t.module: "oci://h/t@sha256:ab" is not oci://registry/repository@sha256: and 64 hex digits in lower case`},
		"tools without a module":           {"tools:\n  t: {}\n", `wasmgate.yaml:2: tools.t: needs a module, the path of a WASM file`},
		"a digest that is none":            {"tools: {t: {module: /, sha256: \"...\"}}\n", `wasmgate.yaml:1: tools.t.sha256: "..." is not 64 hex digits in lower case`},
		"a module under a server's name":   {"servers: {a: {command: x}}\ntools: {t: {module: /, server: a}}\n", `wasmgate.yaml:2: tools.t.server: "a" is one of the servers: choose another name`},
		"a module under a reserved name":   {"tools: {t: {module: /, server: jobs}}\n", `wasmgate.yaml:1: tools.t.server: "jobs" is reserved`},
		"memory below a page":              {"tools: {t: {module: /, limits: {memory: 1KiB}}}\n", `wasmgate.yaml:1: tools.t.limits.memory: "1KiB" is not from 64KiB to 4GiB`},
		"a pack that is not built":         {"policy: {packs: [grants, budget]}\n", `wasmgate.yaml:1: policy.packs[1]: "budget" is not a pack of this version, which has: grants, flow, flow-ask, readonly, approve, apps, ratelimit, skills, paths, urls`},
		"policies that are missing":        {"policy: {paths: [none/]}\n", `wasmgate.yaml:1: policy.paths[0]: "none/" does not exist`},
		"labels that are missing":          {"policy: {data: {labels: l.yaml}}\n", `wasmgate.yaml:1: policy.data.labels: "l.yaml" does not exist`},
		"a pattern with * inside":          {"sanitize: {tools: {\"a*b\": off}}\n", `wasmgate.yaml:1: sanitize.tools["a*b"]: "a*b" is not the name of a tool, or its beginning and *`},
		"a rule for secrets without an id": {"sanitize: {secrets: {rules: [{regexp: x}]}}\n", `wasmgate.yaml:1: sanitize.secrets.rules[0]: is incomplete: set id and regexp`},
		"a media type that is none":        {"sanitize: {mime: {html: html}}\n", `wasmgate.yaml:1: sanitize.mime.html: "html" is not a media type in lower case, such as text/html or text/*`},
		"pins":                             {"pins: {mode: on, tls_key: x}\n", "wasmgate.yaml:1: pins.mode: \"on\" is not one of trust-first, strict, off\nwasmgate.yaml:1: pins.tls_key: must be true or false, not text"},
		"sessions":                         {"sessions: {scope: client, ttl: 1s, trust_prompt: maybe}\n", "wasmgate.yaml:1: sessions.scope: \"client\" is not one of connection, principal\nwasmgate.yaml:1: sessions.ttl: \"1s\" is not from 1m to 1000h\nwasmgate.yaml:1: sessions.trust_prompt: must be true or false, not text"},
		"approvers":                        {"approvals: {by: [\"role:\", a/b/c, \"*/ann\", \"acme/*\", \"role:*/lead\"]}\n", "wasmgate.yaml:1: approvals.by[0]: \"role:\" names no principal: write the id of a principal, role:NAME or *, with TENANT/ before the name of one of a tenant\nwasmgate.yaml:1: approvals.by[1]: \"a/b/c\" names no principal: write the id of a principal, role:NAME or *, with TENANT/ before the name of one of a tenant\nwasmgate.yaml:1: approvals.by[2]: \"*/ann\" names no principal: write the id of a principal, role:NAME or *, with TENANT/ before the name of one of a tenant"},
		"no approvers":                     {"approvals: {by: []}\n", "wasmgate.yaml:1: approvals.by: names no principal, so that no call could be approved"},
		"approvals":                        {"approvals: {channels: [client, mail], hold: 2m, expire: 1m}\n", "wasmgate.yaml:1: approvals.channels[1]: \"mail\" is not one of client, cli\nwasmgate.yaml:1: approvals.hold: is longer than expire, after which no answer counts"},
		"an unknown record":                {"audit: {record: hash}\n", `wasmgate.yaml:1: audit.record: "hash" is not one of digest, full`},
		"a hold that is none":              {"audit: {hold: a week}\n", `wasmgate.yaml:1: audit.hold: "a week" must be an age such as 7d or 12h, optionally followed by strict`},
		"a hold without a unit":            {"audit: {hold: 7}\n", `wasmgate.yaml:1: audit.hold: 7 has no unit: write 7d`},
		"a hard max below what is kept":    {"audit: {hard_max: 999MiB}\n", `wasmgate.yaml:1: audit.hard_max: is 999MiB, less than the 1000MiB that max_size and keep come to: write more, or less there`},
		"a size without a unit":            {"audit: {max_size: 100}\n", `wasmgate.yaml:1: audit.max_size: 100 has no unit: write 100MiB`},
		"a decimal size":                   {"limits: {body: 4MB}\n", `wasmgate.yaml:1: limits.body: "4MB" is not a size: write a whole number and B, KiB, MiB or GiB, such as 64MiB`},
		"a size beyond 64 bits":            {"limits: {body: 999999999999999999GiB}\n", `wasmgate.yaml:1: limits.body: "999999999999999999GiB" is not from 1KiB to 1GiB`},
		"no calls at all":                  {"limits: {concurrent: 0}\n", `wasmgate.yaml:1: limits.concurrent: "0" is not a whole number from 1 to 65536`},
		"no calls of a session":            {"limits: {session: 0}\n", `wasmgate.yaml:1: limits.session: "0" is not a whole number from 1 to 65536`},
		"no calls of a tool":               {"limits: {tools: {x__y: 0}}\n", `wasmgate.yaml:1: limits.tools.x__y: "0" is not a whole number from 1 to 65536`},
		"a limit of no tool":               {"limits: {tools: {x.y: 1}}\n", `wasmgate.yaml:1: limits.tools["x.y"]: "x.y" is not the name of a tool, or its beginning and *`},
		"no calls at a server":             {"servers: {x: {command: sh, concurrent: 0}}\n", `wasmgate.yaml:1: servers.x.concurrent: "0" is not a whole number from 1 to 65536`},
		"half a call":                      {"limits: {concurrent: 1.5}\n", `wasmgate.yaml:1: limits.concurrent: "1.5" is not a whole number from 1 to 65536`},
		"every origin":                     {"http: {origins: [\"*\"]}\n", `wasmgate.yaml:1: http.origins[0]: "*" is not an origin in lower case without a path, such as https://app.example.com`},
		"an origin with a path":            {"http: {origins: [\"https://a/b\"]}\n", `wasmgate.yaml:1: http.origins[0]: "https://a/b" is not an origin in lower case without a path, such as https://app.example.com`},
		"a host with a scheme":             {"http: {hosts: [\"https://a\"]}\n", `wasmgate.yaml:1: http.hosts[0]: "https://a" is not a host, such as tools.example.com or tools.example.com:8443`},
		"an unknown level":                 {"log: {level: warning}\n", `wasmgate.yaml:1: log.level: "warning" is not one of debug, info, warn, error`},
		"a variable that is none":          {"listen: ${input:x}\n", `wasmgate.yaml:1: listen: "${input:x}" is not a variable: write ${NAME}, ${env:NAME} or ${NAME:-default}, and $${ for the characters themselves`},
		"a variable without its end":       {"listen: ${A\n", `wasmgate.yaml:1: listen: ${ has no closing }: write $${ for the characters themselves`},
		"a variable that is empty":         {"listen: ${EMPTY}\n", `wasmgate.yaml:1: listen: "${EMPTY}" is empty`},
		"a control character":              {"state: \"a\\nb\"\n", `wasmgate.yaml:1: state: "a\nb" holds a control character`},
		"everything at once, in its order": {"log: {level: x}\nlisten: 1\nzzz: 1\nlog: {}\n", "wasmgate.yaml:1: log.level: \"x\" is not one of debug, info, warn, error\nwasmgate.yaml:2: listen: must be text, not a number: put it in quotes\nwasmgate.yaml:3: zzz: unknown key\nwasmgate.yaml:4: log: given twice; first in line 1"},
	}
	for _, k := range []string{"node", "secret", "tenants"} {
		tests["not built: "+k] = struct{ file, want string }{k + ": {a: b}\n", "wasmgate.yaml:1: " + k + ": this version of wasmgate does not have it"}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("wasmgate.yaml", []byte(tt.file), options(t.TempDir()))
			var ps tree.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("error is %v, not problems", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// bomb is 10^6 values by six levels of ten aliases.
func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'g'; c++ {
		before := "*" + string(c-1)
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat(before+", ", 9) + before + "]\n")
	}
	return b.String()
}

func TestAliases(t *testing.T) {
	c, err := config.Parse("wasmgate.yaml", []byte("servers:\n  a: {command: x, env: &e {A: \"1\"}}\n  b: {command: y, env: *e}\n"), options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Servers[0].Env, c.Servers[1].Env); diff != "" {
		t.Errorf("the alias differs from its anchor:\n%s", diff)
	}
}

func TestPlainHTTPWarns(t *testing.T) {
	file := "servers:\n  a: {url: \"http://127.0.0.1:1/\"}\n  b: {url: \"http://[::1]:1/\"}\n  c: {url: \"http://localhost/\"}\n  d:\n    url: http://10.0.0.1/\n"
	c, err := config.Parse("wasmgate.yaml", []byte(file), options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	want := []tree.Problem{{File: "wasmgate.yaml", Line: 6, Path: "servers.d.url", Message: "plain http to another machine: calls and headers can be read on the way"}}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckListen(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:7420": true, "127.1.2.3:0": true, "[::1]:7420": true, "localhost:80": true, "a.localhost:80": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:7420": false, ":7420": false, "[::]:7420": false, "192.168.0.1:80": false, "example.com:80": false, "localhost": false,
		"localhost:http": false, "localhost:-1": false, "localhost.example.com:1": false, "": false,
	} {
		if err := new(config.Config).CheckListen(addr); (err == nil) != ok {
			t.Errorf("CheckListen(%q) = %v, want ok %v", addr, err, ok)
		}
	}
}
