// Package study answers what people ask about a policy and its decisions.
//
// [Explain] says why a call is decided as it is, and [VerdictOf] which calls of a tool could
// pass at all. [Replay] puts sessions that were recorded before a policy again, and a [Shadow]
// has a second policy decide on the calls of a running gateway, and reports where it would
// differ. None of them enforces anything.
//
// The package looks at rules, not at the gateway: records of the audit log are made into cases
// and sessions elsewhere.
package study
