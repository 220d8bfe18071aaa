//go:build !wasip1

package files

import "testing"

// Grant has the tools know dirs as granted while a test runs.
func Grant(t *testing.T, dirs ...string) {
	was := granted
	granted = func() []string { return dirs }
	t.Cleanup(func() { granted = was })
}
