package mcp

const (
	// Revision is the newest revision of MCP with sessions, and the newest that
	// endpoints speak to servers.
	Revision = "2025-11-25"
	// Stateless is the first revision of MCP without a handshake and sessions: each
	// request says who asks, and what its client can do.
	Stateless = "2026-07-28"
)
