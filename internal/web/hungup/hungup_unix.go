//go:build unix

package hungup

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Is reports whether the reader at the other end of a pipe, a socket or a terminal is gone. It is
// false for streams without a descriptor.
func Is(stream any) (gone bool) {
	s, ok := stream.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		at := []unix.PollFd{{Fd: int32(fd)}} // errors and hangups are always reported
		n, err := unix.Poll(at, 0)
		gone = err == nil && n > 0 && at[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone || err != nil
}
