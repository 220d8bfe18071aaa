// Package clients edits the files in which clients of MCP keep their settings, and knows where they are.
//
// clients.go is the table of clients, and of the variables that move their files; file.go reads and
// replaces one, with a backup that undo puts back; server.go adds and removes MCP servers; json.go edits
// JSON and text.go edits TOML and YAML, and both keep what they do not change, comments included;
// owner_*.go tell whose a file is.
package clients
