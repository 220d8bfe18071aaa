package mcp

// The headers of streamable HTTP (MCP 2025-11-25, basic/transports).
const (
	HeaderTrace     = "Traceparent" // W3C Trace Context
	HeaderSession   = "Mcp-Session-Id"
	HeaderProtocol  = "Mcp-Protocol-Version"
	HeaderLastEvent = "Last-Event-Id"
)

// The headers of a request without a session (MCP 2026-07-28, basic/transports).
const (
	HeaderMethod = "Mcp-Method"
	HeaderName   = "Mcp-Name"
)
