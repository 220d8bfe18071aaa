package sandbox

import (
	"github.com/tetratelabs/wazero/api"
)

// A kind is the ABI that a module follows.
type kind string

const (
	command kind = "command" // WASI: _start
	reactor kind = "reactor" // tool_call, cabi_realloc
	plugin  kind = "extism"  // a plug-in of Extism's
)

const (
	i32 = api.ValueTypeI32

	exportStart   = "_start"
	exportInit    = "_initialize"
	exportCtors   = "__wasm_call_ctors" // what some plug-ins of Extism have for it
	exportCall    = "tool_call"
	exportPost    = "cabi_post_tool_call"
	exportRealloc = "cabi_realloc"
	exportMemory  = "memory"
)

// abi lists the parameters and results of the functions that are called.
var abi = map[string][2][]api.ValueType{
	exportStart:   {{}, {}},
	exportInit:    {{}, {}},
	exportCtors:   {{}, {}},
	exportCall:    {{i32, i32, i32, i32}, {i32}},
	exportPost:    {{i32}, {}},
	exportRealloc: {{i32, i32, i32, i32}, {i32}},
}
