package setup

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Next says what is left to do, in its order: explicit is the configuration that was named, url
// where the gateway listens, from the files that servers were taken of.
func (m Made) Next(explicit, url string, p Plan, from []Source) (lines []string) {
	flag := ""
	if explicit != "" {
		flag = " --config " + m.File
	}
	if m.Left != "" {
		lines = append(lines, fmt.Sprintf("add to %s: %s", m.File, m.Left))
	}
	var variables []string
	for _, v := range m.Moved {
		if !slices.Contains(variables, v.Name) {
			variables = append(variables, v.Name)
		}
	}
	if len(variables) > 0 {
		lines = append(lines, "put the tokens into the environment of the gateway: "+strings.Join(variables, ", "))
	}
	for _, id := range m.Added {
		if !slices.Contains(p.Granted, id) {
			lines = append(lines, fmt.Sprintf("wasmgate grant --server %s%s    # or tools of it, by their names", id, flag))
		}
	}
	lines = append(lines, fmt.Sprintf("wasmgate serve%s    # leave it running", flag))
	seen := make(map[string]bool)
	for _, s := range from {
		if line := connect(s, explicit, m.File, url); !seen[line] {
			seen[line], lines = true, append(lines, line)
		}
		lines = append(lines, fmt.Sprintf("take %s out of %s: the client can go past the gateway there", strings.Join(IDs(s.Servers), ", "), s.File))
	}
	if len(from) == 0 {
		lines = append(lines, connect(Source{}, explicit, m.File, url))
	}
	return lines
}

// connect says how a client comes to use the gateway.
func connect(s Source, explicit, file, url string) string {
	if filepath.Base(s.File) == "claude_desktop_config.json" {
		args := []string{"serve", "--stdio"}
		if explicit != "" {
			args = append(args, "--config", file)
		}
		b, _ := json.Marshal(args) // of texts alone
		return fmt.Sprintf(`write into %s: {"mcpServers": {"wasmgate": {"command": "wasmgate", "args": %s}}}`, s.File, b)
	}
	switch s.Client {
	case "claude":
		return "claude mcp add --transport http wasmgate " + url
	case "codex":
		return "codex mcp add wasmgate --url " + url
	case "gemini":
		return "gemini mcp add --transport http wasmgate " + url
	case "cursor":
		return fmt.Sprintf(`write into %s: {"mcpServers": {"wasmgate": {"url": %q}}}`, s.File, url)
	case "vscode":
		return fmt.Sprintf(`write into %s: {"servers": {"wasmgate": {"type": "http", "url": %q}}}`, s.File, url)
	default:
		return "connect your client to " + url
	}
}
