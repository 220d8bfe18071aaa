package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

// socketName is the socket within a state folder.
const socketName = "control.sock"

// maxSocketPath is what sun_path holds on every system, less its end (unix(7)).
const maxSocketPath = 103

// withSocket calls f with a path of the socket that the system accepts. Paths
// in deep folders are too long for it; Linux can name them by the folder's
// descriptor.
func withSocket(state string, f func(path string) error) error {
	path := filepath.Join(state, socketName)
	if len(path) <= maxSocketPath {
		return f(path)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the path of the control socket is longer than %d bytes: %s; configure a shorter state folder", maxSocketPath, path)
	}
	dir, err := os.Open(state)
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName))
}

// Listen listens on the socket of a state folder. The caller holds the lock, so
// that a socket which is there belongs to a process that has ended.
func Listen(ctx context.Context, state string) (net.Listener, error) {
	var ln net.Listener
	err := withSocket(state, func(path string) error {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		var err error
		var lc net.ListenConfig
		if ln, err = lc.Listen(ctx, "unix", path); err != nil {
			return err
		}
		ln.(*net.UnixListener).SetUnlinkOnClose(false) // the path may be the descriptor's
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		if ln != nil {
			ln.Close()
		}
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return ln, nil
}

// Remove removes the socket, at the end of the process that listened.
func Remove(state string) { _ = os.Remove(filepath.Join(state, socketName)) }

func dial(ctx context.Context, state string) (net.Conn, error) {
	var c net.Conn
	err := withSocket(state, func(path string) error {
		var err error
		var d net.Dialer
		c, err = d.DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}
