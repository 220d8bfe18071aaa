package socket

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

// Name is the socket within a state folder.
const Name = "control.sock"

// maxSocketPath is what sun_path holds on every system, less its end (unix(7)).
const maxSocketPath = 103

// With calls f with a path of the socket that the system accepts. Paths
// in deep folders are too long for it; Linux can name them by the folder's
// descriptor.
func With(state string, f func(path string) error) error {
	path := filepath.Join(state, Name)
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
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), Name))
}

// Dial connects to the gateway that runs on a state folder.
func Dial(ctx context.Context, state string) (net.Conn, error) {
	var c net.Conn
	err := With(state, func(path string) error {
		var err error
		var d net.Dialer
		c, err = d.DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}
