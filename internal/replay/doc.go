// Package replay evaluates a policy on recorded calls: on one call, to explain its decision, or on the
// sessions of a log, to find out what another policy would have decided. No tool is called.
//
//	audit log or trace -> recorded.go: sessions -> documents.go: arguments that are kept apart from the log
//	  -> package policy, under policy.go's grants and labels -> compare.go: what differs; tally.go: counts
//
// explain.go explains the decision on a recorded call, try.go that on a hypothetical one. The commands
// policy replay and explain, and the console, use them.
package replay
