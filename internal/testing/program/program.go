// Package program builds wasmgate for tests that run it.
package program

import (
	"crypto/rand"
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
	kept := keptAs(filepath.Base(path))
	_ = os.Link(kept, path) // go build does not link again what is up to date; if it is not, it replaces the file
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = toolchain.Root()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if fresh := kept + rand.Text(); os.Link(path, fresh) == nil { // not from another file system
		_ = os.Rename(fresh, kept)
		_ = os.Remove(fresh) // a rename to the same file leaves both names
	}
	built[race] = path
	return path
}

// keptAs returns where the program stays for the tests of other packages, in the user's cache.
func keptAs(name string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	folder := filepath.Join(cache, "wasmgate-test", "program")
	_ = os.MkdirAll(folder, 0o700)
	return filepath.Join(folder, name)
}
