package web

import (
	"cmp"
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

// Listen listens on host:port, or on unix:PATH, which only the user of this process may open then. It
// replaces a socket on which no process listens any more. If an address is taken, the error names its
// holder, and the setting that chooses another address.
func Listen(ctx context.Context, addr, setting string) (net.Listener, error) {
	ln, err := listen(ctx, addr)
	var taken *socketTaken
	holder := "another process"
	switch {
	case errors.As(err, &taken):
	case errors.Is(err, syscall.EADDRINUSE):
		holder = cmp.Or(PortHolder(addr), holder)
	default:
		return ln, err
	}
	return nil, fmt.Errorf("%s has %s already; end it, or choose another address with %s", holder, addr, setting)
}

type socketTaken struct{}

func (*socketTaken) Error() string { return "another process listens on the socket" }

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

// clear removes a socket on which no process listens.
func clear(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there, and is not a socket", path)
	}
	var d net.Dialer
	if c, err := d.DialContext(ctx, "unix", path); err == nil {
		c.Close()
		return new(socketTaken)
	}
	return os.Remove(path)
}
