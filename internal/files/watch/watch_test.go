package watch_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/files/watch"
)

// A link that is set to another file is a change, even if that file has the same size and time, as the files of a
// ConfigMap can have.
func TestStateOfLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	when := time.Now()
	for _, version := range []string{"1", "2"} {
		if err := errors.Join(os.WriteFile(at(version), []byte("text "+version), 0o600), os.Chtimes(at(version), when, when)); err != nil {
			t.Fatal(err)
		}
	}
	states := map[string]bool{}
	for _, version := range []string{"1", "2", "gone"} {
		_ = os.Remove(at("data"))
		if err := os.Symlink(at(version), at("data")); err != nil {
			t.Skip("no links here:", err)
		}
		state := watch.State(at("data"))
		if again := watch.State(at("data")); again != state {
			t.Errorf("the state of what stays changes: %s, then %s", state, again)
		}
		states[state] = true
	}
	if len(states) != 3 {
		t.Errorf("states: %v", states)
	}
}
