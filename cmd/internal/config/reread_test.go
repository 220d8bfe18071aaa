package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/cmd/internal/config"
)

// TestChanged: each key that changes is named, and only it.
func TestChanged(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"":                                {},
		"servers: {x: {command: sh}}":     {},
		"listen: 127.0.0.1:1":             {"listen"},
		"principals: {a: {}}":             {"principals"},
		"tools: {t: {module: t.wasm}}":    {"tools"},
		"policy: {timeout: 1s}":           {"policy"},
		"sanitize: {profile: html}":       {"sanitize"},
		"pins: {mode: off}":               {"pins"},
		"approvals: {hold: 1s}":           {"approvals"},
		"sessions: {ttl: 2h}":             {"sessions"},
		"audit: {keep: 3}":                {"audit"},
		"limits: {session: 3}":            {"limits"},
		"http: {hosts: [a.example]}":      {"http"},
		"log: {level: warn}":              {"log"},
		"state: other":                    {"state"},
		"limits: {tools: {x__y*: 1}}":     {"limits"},
		"listen: 127.0.0.1:1\nstate: one": {"listen", "state"},
		`secrets: {A: {value: "x", origin: "https://a.example"}}`: {"secrets"},
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
		if got := before.Changed(now); !slices.Equal(got, want) {
			t.Errorf("%q changes %q, want %q", text, got, want)
		}
		if same := reflect.DeepEqual(before.Servers, now.Servers); same != (text != "servers: {x: {command: sh}}") {
			t.Errorf("%q: servers are the same: %v", text, same)
		}
	}
}

// TestReread: what is wrong with the file now is an error, and so is its end.
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
	if ps, ok := err.(config.Problems); !ok || len(ps) != 2 || ps[1].Line != 3 {
		t.Errorf("problems %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reread(config.Options{}); err == nil {
		t.Error("a file that is gone was read")
	}
}
