//go:build wasip1

// Package abi implements the guest's side of the ABI between the sandbox and a reactor: the
// canonical ABI's lowering of
//
//	call(name: string, args: string) -> result<string, string>
//
// Importing it exports cabi_realloc. The export tool_call is in the guest's main package and hands
// its four arguments on to [Call], so that no function has to be registered while the guest
// initialises.
package abi

import (
	"unsafe"

	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

// kept holds what the host has a pointer to, so that the collector does not
// take it. It is never emptied: an instance lives for one call.
var kept [][]byte

// answer is the result of tool_call in memory: a discriminant (0 ok, 1 error),
// a pointer and a length.
var answer [3]uint32

func keep(b []byte) unsafe.Pointer {
	kept = append(kept, b)
	return unsafe.Pointer(unsafe.SliceData(b))
}

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, _, size uint32) unsafe.Pointer {
	b := make([]byte, max(size, 8)) // 8 bytes and more are aligned for every type of the ABI
	copy(b, unsafe.Slice((*byte)(old), oldSize))
	return keep(b)
}

// Call runs a tool of m on the strings that the host has written, and returns the address of the
// result.
func Call(m tool.Module, name unsafe.Pointer, nameLen uint32, args unsafe.Pointer, argsLen uint32) unsafe.Pointer {
	out, err := m.Call(unsafe.String((*byte)(name), nameLen), unsafe.Slice((*byte)(args), argsLen))
	answer[0] = 0
	if err != nil {
		answer[0], out = 1, []byte(err.Error())
	}
	answer[1], answer[2] = uint32(uintptr(keep(out))), uint32(len(out))
	return unsafe.Pointer(&answer)
}
