package web

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// closed gives a Unix socket, before it has a name, the mode that its file will have.
func closed(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }), err)
}
