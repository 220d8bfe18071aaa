package web

import (
	"net"

	"golang.org/x/sys/unix"
)

// PeerUID returns the number of the user at the other end of a Unix socket, as it was when
// the connection was made; false of any other connection.
func PeerUID(c net.Conn) (uid int, ok bool) {
	u, is := c.(*net.UnixConn)
	if !is {
		return 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid, ok = int(cred.Uid), true
		}
	})
	return uid, ok && err == nil
}
