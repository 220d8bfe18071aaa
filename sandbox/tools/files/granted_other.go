//go:build !wasip1

package files

// granted returns the directories that the operator has granted; outside of a sandbox nobody
// grants any, but tests.
var granted = func() []string { return nil }
