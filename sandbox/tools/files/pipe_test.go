//go:build unix

package files_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestRepoScanOpensNoPipe fails by never ending.
func TestRepoScanOpensNoPipe(t *testing.T) {
	dir := tree{"a/": "", "m/.git/worktrees/w/": ""}.make(t)
	for _, name := range []string{"a/.git", "m/.git/HEAD", "m/.git/worktrees/w/gitdir", "root"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := brief(t, scan(t, dir, `{"roots":["DIR","DIR/root"]}`)), "root: it is not a directory"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
