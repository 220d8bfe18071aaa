package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// TestNeedRestart: each key that changes and cannot while the gateway runs is named, and
// only it.
func TestNeedRestart(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"":                                      {},
		"servers: {x: {command: sh}}":           {},
		"listen: 127.0.0.1:1":                   {"listen"},
		"principals: {a: {}}":                   {},
		"auth: {keys: true}":                    {},
		"public_url: \"https://a\"":             {},
		"tls: {terminated_by: [\"127.0.0.1\"]}": {},
		"tls: {cert: t.wasm, key: t.wasm}":      {"tls"},
		"auth: {keys: true}\nsessions: {scope: principal}\nstore: {postgres: \"postgres:///x\", secret: " + strings.Repeat("x", 32) + "}":                                 {"sessions.scope", "store"},
		"auth: {keys: true}\nsessions: {scope: principal}\nstore: {postgres: \"postgres:///x\", secret: " + strings.Repeat("x", 32) + "}\ncluster: {listen: 127.0.0.1:1}": {"sessions.scope", "store", "cluster"},
		"vault: {key: t.wasm}":                                    {"vault"},
		"console: {listen: off}":                                  {"console"},
		"auth: {proxy: {unix: p.sock, user: x-user}}":             {"auth.proxy.unix"},
		"tools: {t: {module: t.wasm}}":                            {},
		"groups: {g: [\"x__*\"]}":                                 {},
		"catalog: {mode: beside}":                                 {},
		"server_info: {name: a}":                                  {},
		"jobs: {offer: true}":                                     {},
		"policy: {timeout: 1s}":                                   {},
		"policy: {packs: [flow], paths: [t.wasm]}":                {},
		"policy: {bundles: [{name: b, path: t.wasm}]}":            {},
		"policy: {shadow: {packs: [grants]}}":                     {},
		"sanitize: {profile: html}":                               {},
		"pins: {mode: off}":                                       {},
		"approvals: {hold: 1s}":                                   {},
		"sessions: {ttl: 2h}":                                     {},
		"sessions: {scope: principal}":                            {"sessions.scope"},
		"sessions: {trust_prompt: true}":                          {},
		"audit: {keep: 3, hold: 1d, hard_max: 4GiB}":              nil,
		"audit: {max_size: 3MiB, record: full, sync: always}":     {},
		"audit: {path: other.jsonl}":                              {"audit.path"},
		"limits: {session: 3}":                                    {},
		"tools_verify: required":                                  {},
		"limits: {concurrent: 3}":                                 {},
		"limits: {body: 1MiB}":                                    {},
		"limits: {result: 1MiB}":                                  {},
		"http: {hosts: [a.example]}":                              {},
		"log: {level: warn}":                                      {},
		"state: other":                                            {"audit.path", "state"},
		"limits: {tools: {x__y*: 1}}":                             {},
		"listen: 127.0.0.1:1\nstate: one":                         {"listen", "audit.path", "state"},
		`secrets: {A: {value: "x", origin: "https://a.example"}}`: {},
	}
	for text, want := range tests {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "t.wasm"), "")
		file := write(t, filepath.Join(dir, "wasmgate.yaml"), "version: 1\n")
		before, err := config.Load(file, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, "version: 1\n"+text+"\n")
		now, err := before.Reread(config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := before.NeedRestart(now); !slices.Equal(got, want) {
			t.Errorf("%q changes %q, want %q", text, got, want)
		}
		if same := reflect.DeepEqual(before.Servers, now.Servers); same != (text != "servers: {x: {command: sh}}") {
			t.Errorf("%q: servers are the same: %v", text, same)
		}
	}
}

// TestEveryKeyCounts: no part of a configuration changes silently. A change that adds a key has to say
// whether a running gateway takes it over.
func TestEveryKeyCounts(t *testing.T) {
	t.Parallel()
	taken := []string{"Agents", "Servers", "Tools", "MustSign", "Secrets", "Groups", "Catalog", "Limits", "Telemetry", "Notify", "Drain", "Sanitize", "Approvals", "HTTP", "Log", "Policy", "Pins", "Jobs", "PublicURL", "ServerInfo", "Registry"} // but for parts that are named
	fixed := []string{"File", "Project", "Warnings", "Replay", "Dev"}                                                                                                                                                                              // no keys
	before, _ := config.Load(write(t, filepath.Join(t.TempDir(), "wasmgate.yaml"), "version: 1\n"), config.Options{})
	taken = append(taken, "Auth", "Principals")
	for i := range reflect.TypeFor[config.Config]().NumField() {
		name := reflect.TypeFor[config.Config]().Field(i).Name
		if slices.Contains(taken, name) || slices.Contains(fixed, name) {
			continue
		}
		next := *before
		alter(t, reflect.ValueOf(&next).Elem().Field(i))
		if keys := before.NeedRestart(&next); len(keys) != 1 || strings.ReplaceAll(strings.Split(keys[0], ".")[0], "_", "") != strings.ToLower(name) {
			t.Errorf("%s changes %q", name, keys)
		}
	}
}

// alter makes another value of v.
func alter(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Struct:
		alter(t, v.Field(0))
	default:
		t.Fatalf("a %s, which this test cannot change", v.Type())
	}
}

// TestReread: if the file is now wrong, empty or gone, that is an error.
func TestReread(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "wasmgate.yaml")
	write(t, file, "version: 1\n")
	c, err := config.Load(file, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "version: 1\nservers: {x: {}}\nlimits: {session: none}\n")
	_, err = c.Reread(config.Options{})
	if ps, ok := err.(tree.Problems); !ok || len(ps) != 2 || ps[1].Line != 3 {
		t.Errorf("problems %v", err)
	}
	write(t, file, "")
	if _, err := c.Reread(config.Options{}); err == nil || !strings.Contains(err.Error(), "wasmgate.yaml: is empty") {
		t.Errorf("a file that an editor has emptied: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reread(config.Options{}); err == nil {
		t.Error("a file that is gone was read")
	}
}
