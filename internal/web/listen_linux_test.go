package web

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestClosed: a socket is closed to other users from its first moment, whatever the umask says.
func TestClosed(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "s")
	ln, err := (&net.ListenConfig{Control: closed}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
