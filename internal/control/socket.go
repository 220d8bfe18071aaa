package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/control/socket"
)

// Listen listens on the socket of a state folder. The caller holds the lock, so
// that a socket which is there belongs to a process that has ended.
func Listen(ctx context.Context, state string) (net.Listener, error) {
	var ln net.Listener
	err := socket.With(state, func(path string) error {
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
func Remove(state string) { _ = os.Remove(filepath.Join(state, socket.Name)) }
