// Package replay puts what was recorded before a policy again: one call, to say why it was
// decided as it was, or the sessions of a log, to say what another policy would have decided.
// Nothing is called.
//
//	audit log or trace -> recorded.go: sessions -> documents.go: arguments that are kept beside the log
//	  -> package policy, under policy.go's grants and labels -> compare.go: what differs; tally.go: counts
//
// explain.go says of one recorded call why it was decided so, try.go of one that nobody makes. The
// commands policy replay and explain, and the console, ask.
package replay
