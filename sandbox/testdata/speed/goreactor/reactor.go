//go:build wasip1

package main

import "unsafe"

// kept holds what the host has a pointer to.
var (
	kept   [][]byte
	result [3]uint32
)

func keep(b []byte) unsafe.Pointer {
	kept = append(kept, b)
	return unsafe.Pointer(unsafe.SliceData(b))
}

//go:wasmexport cabi_realloc
func realloc(_ unsafe.Pointer, _, _, size uint32) unsafe.Pointer {
	return keep(make([]byte, max(size, 8)))
}

//go:wasmexport tool_call
func toolCall(_ unsafe.Pointer, _ uint32, args unsafe.Pointer, size uint32) unsafe.Pointer {
	out, err := answer(unsafe.Slice((*byte)(args), size))
	result[0] = 0
	if err != nil {
		result[0], out = 1, []byte(err.Error())
	}
	result[1], result[2] = uint32(uintptr(keep(out))), uint32(len(out))
	return unsafe.Pointer(&result)
}

//go:wasmexport cabi_post_tool_call
func post(unsafe.Pointer) { kept = kept[:0] }

func main() {}
