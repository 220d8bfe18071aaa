//go:build unix

package plain

import "syscall"

// supported says that connections can be asked whether they are quiet.
const supported = true

// A watch looks whether something has come on a connection, without waiting for it.
type watch struct {
	read  func(fd uintptr) bool // look, made once
	byte  [1]byte
	quiet bool
}

func (w *watch) look(fd uintptr) bool {
	_, err := syscall.Read(int(fd), w.byte[:]) // Go's connections do not block
	w.quiet = err == syscall.EAGAIN
	return true
}

// quiet reports whether a kept connection is open and nothing has come on it: an unrequested answer
// must not become that of the next request.
func (k *conn) quiet() bool {
	return k.raw.Read(k.watch.read) == nil && k.watch.quiet
}
