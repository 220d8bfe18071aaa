package bridge

// The states of a task. Those from taskCompleted on are its end.
const (
	taskWorking   = "working"
	taskInput     = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// The types of results (MCP 2026-07-28, basic, "ResultType"). One without is complete;
// resultTask is of the extension of tasks.
const (
	resultComplete = "complete"
	resultMore     = "input_required"
	resultTask     = "task"
)
