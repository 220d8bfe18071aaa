package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
)

// UnixPrefix begins an address that is a Unix socket, by its path.
const UnixPrefix = "unix:"

// Listen listens on host:port, or on unix:PATH, which only the user of this process may
// open then. A socket that nobody listens on any more is replaced. The error says who has
// a port that is taken.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	ln, err := listen(ctx, addr)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ln, err
	}
	holder := PortHolder(addr)
	if holder == "" {
		holder = "another process"
	}
	return nil, fmt.Errorf("%s has %s already; end it, or choose another address with --listen", holder, addr)
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	path, unix := strings.CutPrefix(addr, UnixPrefix)
	if !unix {
		return lc.Listen(ctx, "tcp", addr)
	}
	if err := clear(ctx, path); err != nil {
		return nil, err
	}
	lc.Control = closed // others could connect before the mode of the file is changed
	ln, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// clear removes a socket on which nobody listens.
func clear(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there, and is no socket", path)
	}
	var d net.Dialer
	if c, err := d.DialContext(ctx, "unix", path); err == nil {
		c.Close()
		return fmt.Errorf("another process listens on %s", path)
	}
	return os.Remove(path)
}
