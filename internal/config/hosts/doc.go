// Package hosts reads the servers in the files of MCP clients: the mcp.json of Claude, Cursor, VS
// Code and Gemini CLI, the config.toml of Codex, the settings of Zed, Goose and OpenCode. It turns
// them into servers as a wasmgate.yaml has them, and knows nothing of what their keys mean here.
//
// hosts.go finds the servers, server.go turns one, keys.go says what its keys are called.
package hosts
