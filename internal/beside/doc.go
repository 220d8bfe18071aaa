// Package beside runs what goes on beside the calls of a gateway and tells others how it
// does: metrics, traces, the audit log on its way elsewhere, notices, anchors, and the
// arguments that are kept. No call waits for any of it.
package beside
