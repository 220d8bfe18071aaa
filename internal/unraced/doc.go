// Package unraced says to tests of what runs in one goroutine, in which the race detector
// finds nothing, that they run with it, ten times as slowly. Without the detector it says
// nothing.
package unraced

import "testing"

// Short reports whether such tests are to try less: with the detector, unless
// WASMGATE_RACE_ALL is set.
func Short() bool { return short() }

// Fewer is how often a test tries the same, n times in a full run: a tenth of it if tests are
// to be [Short], and for a person at work (go test -short).
func Fewer(n int) int {
	if Short() || testing.Short() {
		return n / 10
	}
	return n
}
