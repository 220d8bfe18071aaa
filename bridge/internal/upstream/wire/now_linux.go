package wire

import "syscall"

// pipeBuf is how many bytes a pipe takes as a whole or not at all (PIPE_BUF, pipe(7)).
const pipeBuf = 4096

// writeNow writes a line to a pipe that does not block, and reports whether there was room
// for it; else none of it is written.
func writeNow(pipe syscall.RawConn, line []byte) (written bool) {
	if len(line) > pipeBuf {
		return false
	}
	_ = pipe.Write(func(fd uintptr) bool {
		n, err := syscall.Write(int(fd), line)
		written = err == nil && n == len(line)
		return true
	})
	return written
}
