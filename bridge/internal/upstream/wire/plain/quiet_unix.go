//go:build unix

package plain

import "syscall"

// supported says that connections can be asked whether they are quiet.
const supported = true

// quiet reports whether a kept connection is open and nothing has come on it: an answer that
// nobody has asked for must not become that of the next request.
func (k *conn) quiet() bool {
	quiet := false
	err := k.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:]) // Go's connections do not block
		quiet = err == syscall.EAGAIN
		return true
	})
	return err == nil && quiet
}
