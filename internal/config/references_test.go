package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/variables"
)

// A secret that is named by where it is stays a reference until its server starts. Elsewhere, and in the file of a
// project, a reference is an error.
func TestReferences(t *testing.T) {
	load := func(text string) (*config.Config, error) {
		file := filepath.Join(t.TempDir(), "wasmgate.yaml")
		write(t, file, text)
		return config.Load(file, config.Options{})
	}
	c, err := load("version: 1\nservers:\n  a: {command: x, args: ['--key=${file:/run/key}'], env: {T: '${exec:pass show it}', D: '$${file:/x}'}}\n  b: {url: 'https://b.example.com/mcp', headers: {Authorization: 'Bearer ${keyring:b/me}'}}\n  c: {command: x, env: {T: plain}}\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} {
		s := c.Servers[i]
		text := strings.Join(s.Args, "") + string(s.Env["T"]) + string(s.Headers["Authorization"])
		if variables.Refers(text) != want || s.Fault != "" {
			t.Errorf("server %s: %q, fault %q", s.ID, text, s.Fault)
		}
	}
	if got := string(c.Servers[0].Env["D"]); got != "${file:/x}" {
		t.Errorf("an escaped reference reads %q", got)
	}
	for _, text := range []string{
		"log: {level: '${file:/x}'}\n", "state: '${file:/x}'\n", "servers: {a: {command: '${exec:x}'}}\n", "servers: {a: {command: x, cwd: '${file:/x}'}}\n",
		"servers: {a: {url: 'https://a.example.com/${vault:x}'}}\n", "servers: {a: {module: a.wasm, env: {T: '${file:/x}'}}}\n",
		"secrets: {API: {value: '${op://a/b/c}', origin: 'https://a.example.com'}}\n", "drain: '${file:/x}'\n", "pins: {tls_key: '${file:/x}'}\n",
	} {
		if _, err := load("version: 1\n" + text); err == nil || !strings.Contains(err.Error(), "works only in args, env and headers of a server") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := config.ImportMCP(strings.NewReader(`{"mcpServers": {"a": {"command": "x", "env": {"T": "${exec:id}"}}}}`), "mcp.json"); err != nil {
		t.Error(err)
	}
}
