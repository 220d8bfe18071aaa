// Package background runs what goes on next to the calls of a gateway and tells others how it
// does: metrics, traces, the audit log on its way elsewhere, notices, anchors, and the
// arguments that are kept. No call waits for any of it.
//
// App gives it a configuration ([Work.Put]) and what the gateway is at the moment ([Source]); the
// gateway gives it each record ([Work.Observe]) and asks it for the place of a call in a trace.
//
//	background.go what runs, and anew when the configuration is another; its problems
//	metrics.go    Prometheus, on a listener of its own
//	export.go     metrics and spans by OTLP
//	ship.go       the log to targets, by internal/background/ship
//	notices.go    conditions to people, by internal/background/notify
//	anchor.go     the head of the log, kept elsewhere
//	documents.go  arguments and results, by internal/background/documents
package background
