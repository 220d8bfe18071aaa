package config_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/hosts"
)

// The clients that name servers and their commands in their own way.
func TestImportOwnForms(t *testing.T) {
	for name, text := range map[string]string{
		"/h/config.yaml":   "# mine\nGOOSE_MODE: auto\nextensions:\n  developer: {type: builtin, enabled: true}\n  files: {type: stdio, cmd: npx, args: [-y, x], envs: {A: b}, enabled: true}\n",
		"/h/settings.json": "{// mine\n\"theme\": \"One\", \"context_servers\": {\"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"x\"], \"env\": {\"A\": \"b\"}}, \"ext\": {\"settings\": {}},}}",
		"/h/zed.json":      `{"context_servers": {"files": {"command": {"path": "npx", "args": ["-y", "x"], "env": {"A": "b"}}}}}`,
		"/h/opencode.json": `{"mcp": {"files": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "b"}, "enabled": true}}}`,
	} {
		servers, problems, err := config.ImportMCP(strings.NewReader(text), name)
		if err != nil || len(servers) != 1 {
			t.Errorf("%s: %d servers, %v, %v", name, len(servers), problems, err)
			continue
		}
		s := servers[0]
		if s.ID != "files" || s.Command != "npx" || strings.Join(s.Args, " ") != "-y x" || string(s.Env["A"]) != "b" || s.Fault != "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	// Settings of Gemini CLI have tables of these names for other things.
	servers, _, err := config.ImportMCP(strings.NewReader(`{"mcp": {"allowed": ["a"]}, "extensions": {"disabled": []}, "mcpServers": {"a": {"command": "x"}}}`), "/h/g.json")
	if err != nil || len(servers) != 1 {
		t.Errorf("%d servers, %v", len(servers), err)
	}
	if _, _, err := config.ImportMCP(strings.NewReader(`{"mcp": {"allowed": ["a"]}}`), "/h/g.json"); err == nil || !strings.Contains(err.Error(), hosts.NoServers) {
		t.Errorf("no servers: %v", err)
	}
}
