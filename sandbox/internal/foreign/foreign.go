// Package foreign recognizes modules that were made for hosts of another kind, by their imports.
package foreign

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// hosts are recognized by an import, each with what to do about it.
var hosts = []struct {
	is   func(rewrite.Import) bool
	what string
}{
	{func(i rewrite.Import) bool { return strings.HasPrefix(i.Module, "wasi:") },
		"it is the core of a component (WASI 0.2): build a core module for WASI preview 1, such as wasm32-wasip1"},
	{func(i rewrite.Import) bool {
		return strings.HasPrefix(i.Module, "__wbindgen") || i.Module == "wbg" || strings.Contains(i.Name, "__wbindgen") || strings.HasSuffix(i.Module, "_bg.js")
	}, "wasm-bindgen made it as one half of a JavaScript package: build the crate as a program for wasm32-wasip1"},
	{func(i rewrite.Import) bool {
		return i.Module == "gojs" || i.Module == "go" && strings.HasPrefix(i.Name, "syscall/js")
	},
		"it is Go for browsers: build with GOOS=wasip1 in the place of GOOS=js"},
	{func(i rewrite.Import) bool { return i.Module == "napi" || strings.HasPrefix(i.Name, "napi_") },
		"it is an addon for Node, one half of a JavaScript package: look for a build of its source for wasm32-wasip1"},
	{func(i rewrite.Import) bool { return !i.Function && i.Name == "memory" },
		"it takes its memory from its host, as threads and halves of JavaScript packages do: build it with a memory of its own"},
	{func(i rewrite.Import) bool {
		return (i.Module == "env" || i.Module == "a") && (strings.HasPrefix(i.Name, "emscripten_") || strings.HasPrefix(i.Name, "invoke_") || strings.HasPrefix(i.Name, "__syscall_") || i.Name == "__cxa_throw" || i.Name == "abort")
	}, "Emscripten or AssemblyScript made it for a JavaScript host: with Emscripten build with -sSTANDALONE_WASM, with AssemblyScript with --use abort="},
	{func(i rewrite.Import) bool { return i.Module == "env" && !i.Function },
		"it is a library that is linked at run time (a side module): link it into a program"},
	{func(i rewrite.Import) bool { return strings.HasPrefix(i.Name, "sock_") },
		"it wants sockets, and there are none: HTTP requests go by the host's function http, and `imports: {stub: [\"wasi_snapshot_preview1.sock_*\"]}` in its manifest has it run without"},
}

// Advice is what would make a module with these imports load that does not; "" if that is not
// known. Missing reports whether an import is not here.
func Advice(imports []rewrite.Import, missing func(rewrite.Import) bool) string {
	for _, h := range hosts {
		if slices.ContainsFunc(imports, func(i rewrite.Import) bool { return missing(i) && h.is(i) }) {
			return h.what
		}
	}
	return ""
}
