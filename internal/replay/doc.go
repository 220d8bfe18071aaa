// Package replay puts what was recorded before a policy again: one call, to say why it was
// decided as it was, or the sessions of a log, to say what another policy would have decided.
// Nothing is called.
package replay
