package sandbox

import (
	"errors"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// foreign are the hosts that modules are made for and that is not here, told by what is
// imported from them, with what to do about it.
var foreign = []struct {
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

// advice is what would make a module with these imports load that does not; "" if
// that is not known.
func (r *Runtime) advice(imports []rewrite.Import) string {
	for _, f := range foreign {
		if slices.ContainsFunc(imports, func(i rewrite.Import) bool { return r.missing(i) && f.is(i) }) {
			return f.what
		}
	}
	return ""
}

// missing reports whether there is nothing here by this import's name, or a function of
// WASI of another form: there are versions of some.
func (r *Runtime) missing(i rewrite.Import) bool {
	return !i.Function || r.host[i.Module][i.Name] == nil || r.otherForm(i)
}

func (r *Runtime) otherForm(i rewrite.Import) bool {
	here := r.host[i.Module][i.Name]
	return here != nil && ofWASI(i) && (len(here.ParamTypes()) != i.Params || len(here.ResultTypes()) != i.Results)
}

func readsInput(i rewrite.Import) bool { return ofWASI(i) && i.Name == "fd_read" }

func exits(i rewrite.Import) bool { return ofWASI(i) && i.Name == "proc_exit" }

func ofWASI(i rewrite.Import) bool { return i.Module == wasiModule || i.Module == unstableModule }

// needsManifest is what a module without one is told.
const needsManifest = "it has no manifest: `wasmgate sandbox manifest MODULE` writes a first one; an MCP server (servers.NAME.module) needs none"

// refusal says of a module that does not load why, and what it would take.
func (r *Runtime) refusal(decoded *rewrite.Module, err error) []string {
	for { // without the words around it that name the module
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(err.Error(), "sandbox: compile module") {
			break
		}
		err = inner
	}
	problems := []string{err.Error()}
	if decoded != nil {
		if a := r.advice(decoded.Imports); a != "" {
			problems = append(problems, a)
		}
	}
	return problems
}
