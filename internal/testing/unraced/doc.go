// Package unraced decides what tests leave out. With the race detector they leave out tests of what
// runs in one goroutine: it finds nothing there, and they run ten times as slowly. Without it, go test
// -short leaves out tests that take long, because a person at work waits.
package unraced

import "testing"

// Short reports whether tests of what runs in one goroutine are to try less: with the
// detector, unless WASMGATE_RACE_ALL is set.
func Short() bool { return short() }

// Raced reports whether the race detector is at work.
func Raced() bool { return raced }

// AtWork reports whether a person at work waits: go test -short without the detector, which
// looks for races with -short, too, and in all that takes long.
func AtWork() bool { return !raced && testing.Short() }

// Long leaves out a test that takes long while a person at work waits.
func Long(t testing.TB) {
	t.Helper()
	if AtWork() {
		t.Skip("takes long: left out by -short; go test ./... runs it")
	}
}

// Fewer is how often a test tries the same, n times in a full run: a tenth of it if tests are
// to be [Short], and for a person at work (go test -short).
func Fewer(n int) int {
	if Short() || testing.Short() {
		return n / 10
	}
	return n
}
