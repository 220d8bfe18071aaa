package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/wasmgate/wasmgate/sandbox/rewrite"
)

// ModuleConfig configures a [Module]. The zero ModuleConfig suits a module
// that carries its manifest.
type ModuleConfig struct {
	// Name stands in errors and logs, for example the path of the module.
	Name string
	// Manifest is that of a module which does not carry one. Giving one for a
	// module that does is an error: which of them holds would be a guess.
	Manifest *Manifest
	// Limits take precedence over those of the runtime, field by field.
	Limits Limits
}

// A Module is compiled code with its tools. It may be used from several
// goroutines, and belongs to the [Runtime] that compiled it.
type Module struct {
	runtime  *Runtime
	compiled wazero.CompiledModule
	reactor  bool
	name     string
	tools    []Tool
	limits   Limits
	buffers  buffers
}

// Compile checks and compiles a module. No code of the module runs.
//
// It refuses what is no core module (a component is told apart), what is too
// large, what imports more than functions of WASI preview 1, what follows
// neither ABI of the package, and what starts with more memory than its limits
// allow; the error says so. Compiling a large module takes seconds, which ctx
// does not shorten, unless the cache holds its code.
func (r *Runtime) Compile(ctx context.Context, wasm []byte, cfg ModuleConfig) (_ *Module, err error) {
	defer func() {
		if p := recover(); p != nil { // a defect of the engine that a module can reach is that module's end only
			err = fmt.Errorf("panic in the engine: %v", p)
		}
		if err != nil {
			err = fmt.Errorf("sandbox: compile module %q: %w", cfg.Name, err)
		}
	}()
	limits, err := cfg.Limits.or(r.limits)
	if err != nil {
		return nil, err
	}
	decoded, err := rewrite.Decode(wasm)
	if err != nil {
		return nil, err
	}
	if names := r.refused(decoded.Imports); names != "" {
		return nil, fmt.Errorf("it imports what it is not granted: %s; only functions of %s are", names, wasi_snapshot_preview1.ModuleName)
	}
	metered, err := decoded.Meter()
	if err != nil {
		return nil, err
	}
	if decoded.MinMemory > limits.Memory {
		return nil, fmt.Errorf("it starts with %d bytes of memory, its limit is %d", decoded.MinMemory, limits.Memory)
	}
	manifest, err := choose(cfg.Manifest, decoded.Manifest)
	if err != nil {
		return nil, err
	}
	m := &Module{runtime: r, name: cfg.Name, tools: manifest.Tools, limits: limits}
	if err := r.enter(ctx); err != nil { // compiling takes a slot like a call
		return nil, err
	}
	defer r.leave()
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	if m.compiled, err = r.engine.CompileModule(ctx, metered); err != nil {
		return nil, err
	}
	if m.reactor, err = r.checkSignatures(m.compiled); err != nil {
		return nil, errors.Join(err, m.compiled.Close(ctx))
	}
	return m, nil
}

// namedImports bounds how many of the refused imports an error names.
const namedImports = 8

// refused returns the imports that are not granted, as an error names them.
func (r *Runtime) refused(imports []rewrite.Import) string {
	var names []string
	refused := 0
	for _, in := range imports {
		if in.Function && in.Module == wasi_snapshot_preview1.ModuleName && r.wasi[in.Name] != nil {
			continue
		}
		if refused++; refused > namedImports {
			continue
		}
		name := in.Module + "." + in.Name
		if !in.Function {
			name += " (not a function)"
		}
		names = append(names, fmt.Sprintf("%.100q", name))
	}
	if refused > namedImports {
		names = append(names, fmt.Sprintf("%d more", refused-namedImports))
	}
	return strings.Join(names, ", ")
}

// choose returns a module's manifest: the one given, or the one carried.
func choose(given *Manifest, carried []byte) (Manifest, error) {
	switch {
	case given != nil && carried != nil:
		return Manifest{}, errors.New("a manifest is given for it, but it carries one")
	case given != nil:
		return *given, given.check()
	case carried != nil:
		return ParseManifest(carried)
	}
	return Manifest{}, errors.New("it has no manifest: give one, or add it as the custom section wasmgate")
}

const (
	i32 = api.ValueTypeI32

	exportStart   = "_start"
	exportInit    = "_initialize"
	exportCall    = "tool_call"
	exportRealloc = "cabi_realloc"
	exportMemory  = "memory"
)

// abi lists the parameters and results of the functions that are called.
var abi = map[string][2][]api.ValueType{
	exportStart:   {{}, {}},
	exportInit:    {{}, {}},
	exportCall:    {{i32, i32, i32, i32}, {i32}},
	exportRealloc: {{i32, i32, i32, i32}, {i32}},
}

// checkSignatures finds out which ABI a module follows. Imports of a wrong
// type would fail only when a call links them; here they fail at load.
func (r *Runtime) checkSignatures(compiled wazero.CompiledModule) (reactor bool, err error) {
	exports := compiled.ExportedFunctions()
	for name, want := range abi {
		if f := exports[name]; f != nil && !sameType(f, want[0], want[1]) {
			return false, fmt.Errorf("it exports %s with types other than %v -> %v", name, typeNames(want[0]), typeNames(want[1]))
		}
	}
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == rewrite.MeterModule {
			continue
		}
		if host := r.wasi[name]; !sameType(f, host.ParamTypes(), host.ResultTypes()) {
			return false, fmt.Errorf("it imports %s with types other than %v -> %v", name, typeNames(host.ParamTypes()), typeNames(host.ResultTypes()))
		}
	}
	if compiled.ExportedMemories()[exportMemory] == nil {
		return false, errors.New("it exports no memory of the name memory")
	}
	switch {
	case exports[exportCall] != nil && exports[exportRealloc] != nil:
		return true, nil
	case exports[exportCall] != nil:
		return false, fmt.Errorf("it exports %s but not %s", exportCall, exportRealloc)
	case exports[exportStart] != nil:
		return false, nil
	}
	return false, fmt.Errorf("it exports neither %s (a WASI command) nor %s (a reactor)", exportStart, exportCall)
}

func sameType(f api.FunctionDefinition, params, results []api.ValueType) bool {
	return slices.Equal(f.ParamTypes(), params) && slices.Equal(f.ResultTypes(), results)
}

func typeNames(types []api.ValueType) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = api.ValueTypeName(t)
	}
	return names
}

// Tools returns the definitions of the module's tools, in the order of its
// manifest. They are the module's own claims: unchecked but for their form.
func (m *Module) Tools() []Tool { return slices.Clone(m.tools) }

// Close frees the compiled code once the running calls are done. The module
// must not be called again.
func (m *Module) Close(ctx context.Context) error { return m.compiled.Close(ctx) }
