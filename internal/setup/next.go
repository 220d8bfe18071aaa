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
func (m Made) Next(explicit, url string, from []Source) (lines []string) {
	flag := ""
	if explicit != "" {
		flag = " --config " + m.File
	}
	if m.Missing != "" {
		lines = append(lines, fmt.Sprintf("add to %s: %s", m.File, m.Missing))
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
	if len(m.Left) > 0 {
		lines = append(lines, fmt.Sprintf("wasmgate grant %s%s    # one more tool; several by their names", m.Left[0].Tool, flag))
	}
	for _, id := range m.Added {
		if !m.grantedAll(id) {
			lines = append(lines, fmt.Sprintf("wasmgate grant --server %s%s    # all of %[1]s, also what changes something", id, flag))
		}
	}
	lines = append(lines, fmt.Sprintf("wasmgate serve%s    # leave it running", flag))
	seen := make(map[string]bool)
	for _, s := range from {
		if line := connect(s, explicit, m.File, url); !seen[line] {
			seen[line], lines = true, append(lines, line)
		}
		lines = append(lines, fmt.Sprintf("remove %s from %s; otherwise the client can bypass the gateway", strings.Join(IDs(s.Servers), ", "), s.File))
	}
	if len(from) == 0 {
		lines = append(lines, connect(Source{}, explicit, m.File, url))
	}
	return lines
}

// grantedAll reports whether tools of a server were found, and all of them are granted.
func (m Made) grantedAll(id string) bool {
	of := func(tool string) bool { return strings.HasPrefix(tool, id+"__") }
	return slices.ContainsFunc(m.Granted, of) && !slices.ContainsFunc(m.Left, func(l Left) bool { return of(l.Tool) })
}

// Text says what was granted and what was left out, a line each.
func (m Made) Text() (lines []string) {
	if len(m.Granted) > 0 {
		lines = append(lines, fmt.Sprintf("%s grants you the tools that only read: %s", m.Grants, strings.Join(m.Granted, ", ")))
	} else {
		lines = append(lines, "no tool is granted to you")
	}
	var left []string
	for _, l := range m.Left {
		left = append(left, l.Tool)
	}
	if len(left) > 0 {
		lines = append(lines, "left out, since they may change something: "+strings.Join(left, ", "))
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
