package bridge

// The headers of streamable HTTP (MCP 2025-11-25, basic/transports).
const (
	headerSession   = "Mcp-Session-Id"
	headerProtocol  = "Mcp-Protocol-Version"
	headerLastEvent = "Last-Event-Id"
)

// The headers of a request without a session (MCP 2026-07-28, basic/transports).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)
