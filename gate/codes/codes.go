package codes

// The codes of outcomes: see gate.Code.
const (
	OK        = "ok"
	ToolError = "tool_error"
	Cancelled = "cancelled"
	Timeout   = "timeout"
	Protocol  = "protocol"
)

// Advice introduces the remedy of a refusal with a code. What is new or has changed is looked
// at before it is approved.
func Advice(code string) string {
	if code == "refused_pin" {
		return "look first: "
	}
	return "to allow it: "
}
