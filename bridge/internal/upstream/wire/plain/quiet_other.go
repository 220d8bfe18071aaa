//go:build !unix

package plain

// supported says that connections can be asked whether they are quiet.
const supported = false

func (k *conn) quiet() bool { return false }
