// Package program builds wasmgate for tests that run it.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// Main runs the tests, and removes what they have built. It returns their exit code.
func Main(m *testing.M) int {
	defer func() {
		if dir != "" {
			os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

var (
	mu    sync.Mutex
	dir   string // "" until something is built
	built = map[bool]string{}
)

// Build returns the path of wasmgate, with the race detector or without, which is built once.
// The package's TestMain calls [Main].
func Build(t testing.TB, race bool) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if path, ok := built[race]; ok {
		return path
	}
	if dir == "" {
		made, err := os.MkdirTemp("", "program")
		if err != nil {
			t.Fatal(err)
		}
		dir = made
	}
	path := filepath.Join(dir, "wasmgate")
	args := []string{"build", "-o", path, "./cmd/wasmgate"}
	if race {
		path += "-race"
		args = []string{"build", "-race", "-o", path, "./cmd/wasmgate"}
	}
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = toolchain.Root()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	built[race] = path
	return path
}
