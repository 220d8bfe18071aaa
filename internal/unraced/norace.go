//go:build !race

package unraced

import "testing"

// Run runs the tests of a package, for its TestMain, and returns the exit code.
func Run(m *testing.M) int { return m.Run() }

func short() bool { return false }
