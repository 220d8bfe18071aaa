// Package unraced has tests that run with the race detector compile WASM modules by a
// program without it: the compiler is a process of its own, in which there is no race of
// ours, and with the detector it takes ten times as long. Without the detector it does
// nothing.
package unraced

// Short reports whether tests of what runs in one goroutine are to try less, since they
// run with the race detector: not if WASMGATE_RACE_ALL is set.
func Short() bool { return short() }

// Fewer is how often a test tries the same, n times without the race detector: a tenth of
// it if tests are to be [Short].
func Fewer(n int) int {
	if Short() {
		return n / 10
	}
	return n
}
