// Package compiled keeps the machine code of modules between runs of tests, as Go's build cache
// does: compiling the embedded tools takes seconds, and under the race detector a minute.
package compiled

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// Folder returns the folder of the machine code, that of the embedded tools included.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := folder()
	if err == nil {
		err = embedded(t, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Link makes the folder that of a state folder, which it makes.
func Link(t testing.TB, state string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(state, 0o700), os.Symlink(Folder(t), filepath.Join(state, "wasm"))); err != nil {
		t.Fatal(err)
	}
}

// Copy fills a folder of the test's own, which it makes, with the machine code that is there.
func Copy(t testing.TB, to string) {
	t.Helper()
	from := Folder(t)
	entries, err := os.ReadDir(from)
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() {
			err = link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// link makes a hard link or, on another file system, a copy.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	b, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) { // evicted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// folder makes the folder in the user's cache or, if that cannot be written to, in the folder for
// temporary files.
var folder = sync.OnceValues(func() (string, error) {
	if cache, err := os.UserCacheDir(); err == nil {
		if dir := filepath.Join(cache, "wasmgate-test", "wasm"); writable(dir) {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("wasmgate-test-%d", os.Getuid()), "wasm")
	return dir, os.MkdirAll(dir, 0o700)
})

func writable(dir string) bool {
	if os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	f, err := os.CreateTemp(dir, "writable")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

var (
	mu   sync.Mutex
	done bool
)

// embedded compiles the embedded tools, unless they are there.
func embedded(t testing.TB, dir string) error {
	mu.Lock()
	defer mu.Unlock()
	if done {
		return nil
	}
	r, err := sandbox.New(t.Context(), sandbox.Config{CacheDir: dir})
	if err != nil {
		return err
	}
	defer r.Close(t.Context())
	if !sandbox.EmbeddedCompiled(r) {
		err = sandbox.CompileEmbedded(t.Context(), r)
	}
	done = err == nil
	return err
}
