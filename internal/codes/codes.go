package codes

// The codes of outcomes: see gate.Code.
const (
	OK        = "ok"
	ToolError = "tool_error"
	Cancelled = "cancelled"
	Timeout   = "timeout"
	Protocol  = "protocol"
)
