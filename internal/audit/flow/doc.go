// Package flow reconstructs from the audit log what a session has read and what it did then.
//
// flow.go takes the calls of a session from the log, for the command sessions show and for the console:
// those that raised the labels of the session, and those that were made under them or refused.
package flow
