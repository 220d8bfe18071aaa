//go:build wasip1

// Command guest is the WASM reactor that offers package tools to the sandbox.
// It follows the canonical ABI's lowering of
//
//	call(name: string, args: string) -> result<string, string>
package main

import (
	"unsafe"

	"github.com/wasmgate/wasmgate/sandbox/tools"
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

//go:wasmexport tool_call
func toolCall(name unsafe.Pointer, nameLen uint32, args unsafe.Pointer, argsLen uint32) unsafe.Pointer {
	out, err := tools.Call(unsafe.String((*byte)(name), nameLen), unsafe.Slice((*byte)(args), argsLen))
	answer[0] = 0
	if err != nil {
		answer[0], out = 1, []byte(err.Error())
	}
	answer[1], answer[2] = uint32(uintptr(keep(out))), uint32(len(out))
	return unsafe.Pointer(&answer)
}

func main() {}
