package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func TestFile(t *testing.T) {
	storetest.Documents(t, func(t *testing.T) []state.Document {
		path := filepath.Join(t.TempDir(), "state", "list.json")
		return []state.Document{state.File(path), state.File(path), state.File(path)}
	})
}

func TestFileOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes on Windows")
	}
	path := filepath.Join(t.TempDir(), "list.json")
	if err := errors.Join(os.WriteFile(path, []byte("[]"), 0o644), os.Chmod(path, 0o644)); err != nil { // umask
		t.Fatal(err)
	}
	if _, _, err := state.File(path).Load(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("error %v", err)
	}
}
