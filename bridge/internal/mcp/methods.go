package mcp

// Methods of MCP that are no action of a gate's call.
const (
	MethodDiscover    = "server/discover"
	MethodListen      = "subscriptions/listen"
	MethodSetLevel    = "logging/setLevel"
	MethodUnsubscribe = "resources/unsubscribe"
	MethodSkills      = "skills/list"

	MethodAcknowledged = "notifications/subscriptions/acknowledged"
	MethodCancelled    = "notifications/cancelled"
	MethodLog          = "notifications/message"
	MethodProgress     = "notifications/progress"
	MethodRootsChanged = "notifications/roots/list_changed"
	MethodUpdated      = "notifications/resources/updated"
)

// The requests about tasks (MCP 2025-11-25, basic/utilities/tasks; of the extension of
// 2026-07-28 those that get, update and cancel).
const (
	MethodTaskGet    = "tasks/get"
	MethodTaskResult = "tasks/result"
	MethodTaskList   = "tasks/list"
	MethodTaskUpdate = "tasks/update"
	MethodTaskCancel = "tasks/cancel"
)
