package mcp

// The states of a task. Those from TaskCompleted on are its end.
const (
	TaskWorking   = "working"
	TaskInput     = "input_required"
	TaskCompleted = "completed"
	TaskFailed    = "failed"
	TaskCancelled = "cancelled"
)

// The types of results (MCP 2026-07-28, basic, "ResultType"). One without is complete;
// ResultTask is of the extension of tasks.
const (
	ResultComplete = "complete"
	ResultMore     = "input_required"
	ResultTask     = "task"
)
