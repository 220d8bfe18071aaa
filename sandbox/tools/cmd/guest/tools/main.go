//go:build wasip1

// Command tools is the WASM reactor that offers package tools to the sandbox.
package main

import (
	"unsafe"

	"github.com/wasmgate/wasmgate/sandbox/tools"
	"github.com/wasmgate/wasmgate/sandbox/tools/abi"
)

//go:wasmexport tool_call
func toolCall(name unsafe.Pointer, nameLen uint32, args unsafe.Pointer, argsLen uint32) unsafe.Pointer {
	return abi.Call(tools.Module(), name, nameLen, args, argsLen)
}

func main() {}
