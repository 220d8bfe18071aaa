//go:build !wasip1

package files

// granted returns the directories that the operator has granted; outside of a sandbox only tests
// grant any.
var granted = func() []string { return nil }
