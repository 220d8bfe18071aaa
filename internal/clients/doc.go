// Package clients edits the files in which clients of MCP keep their settings, and knows where they are.
//
// clients.go is the table of clients, and of the variables that move their files; file.go reads and
// replaces one, with a backup that undo puts back; json.go edits JSON and keeps what it does not
// change, comments included; owner_*.go tell whose a file is.
package clients
