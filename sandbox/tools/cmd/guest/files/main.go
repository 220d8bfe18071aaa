//go:build wasip1

// Command files is the WASM reactor that offers package files to the sandbox.
package main

import (
	"unsafe"

	"github.com/wasmgate/wasmgate/sandbox/tools/abi"
	"github.com/wasmgate/wasmgate/sandbox/tools/files"
)

//go:wasmexport tool_call
func toolCall(name unsafe.Pointer, nameLen uint32, args unsafe.Pointer, argsLen uint32) unsafe.Pointer {
	return abi.Call(files.Module(), name, nameLen, args, argsLen)
}

func main() {}
