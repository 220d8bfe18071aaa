package dispatch

import "os"

// callStack is how much stack a call needs; OPA needs most of it.
const callStack = 32 << 10

// GrowStack makes the stack of this goroutine large enough for a call while
// there is little on it that must be moved. Grown step by step, deep within the
// policy, its copying takes a tenth of the whole call. To have the room is enough: it is
// not cleared unless it is used.
//
//go:noinline
func GrowStack(use bool) int {
	if !use {
		return 0
	}
	var room [callStack]byte
	return copy(room[:], os.Args[0])
}
