package bridge

// Methods of MCP that are no action of a gate's call.
const (
	methodDiscover    = "server/discover"
	methodListen      = "subscriptions/listen"
	methodSetLevel    = "logging/setLevel"
	methodUnsubscribe = "resources/unsubscribe"

	methodAcknowledged = "notifications/subscriptions/acknowledged"
	methodCancelled    = "notifications/cancelled"
	methodLog          = "notifications/message"
	methodProgress     = "notifications/progress"
	methodRootsChanged = "notifications/roots/list_changed"
	methodUpdated      = "notifications/resources/updated"
)

// The requests about tasks (MCP 2025-11-25, basic/utilities/tasks; of the extension of
// 2026-07-28 those that get, update and cancel).
const (
	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskList   = "tasks/list"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
)
