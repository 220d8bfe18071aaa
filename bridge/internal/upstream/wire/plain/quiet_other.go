//go:build !unix

package plain

// supported says that connections can be asked whether they are quiet.
const supported = false

type watch struct{ read func(fd uintptr) bool }

func (w *watch) look(uintptr) bool { return true }

func (k *conn) quiet() bool { return false }
