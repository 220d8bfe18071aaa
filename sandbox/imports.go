package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

const (
	// wasiModule is the module of WASI's functions.
	wasiModule = "wasi_snapshot_preview1"
	// unstableModule is that of their version before.
	unstableModule = "wasi_unstable"
	// hostModule is the module of the functions that are our own.
	hostModule = "wasmgate"
)

// functions are those that guests may import, by module and name.
type functions map[string]map[string]api.FunctionDefinition

// namedImports bounds how many of the refused imports an error names.
const namedImports = 8

// refused returns an error that names the imports which are not granted.
func (fs functions) refused(imports []rewrite.Import, grants Grants, server bool, manifest Manifest) error {
	var names, keys []string
	refused := 0
	for _, in := range imports {
		granted, own := grantable[in.Name]
		own = own && in.Module == hostModule
		switch {
		case manifest.stubs(in) && fs.missing(in):
			continue
		case in.Function && fs.otherForm(in):
			return otherTypes(in.Module, in.Name, fs[in.Module][in.Name])
		case in.Function && own && granted(grants), in.Function && in.Module != hostModule && fs[in.Module][in.Name] != nil:
			continue
		case own:
			keys = append(keys, "tools.NAME.grant."+in.Name)
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
	if refused == 0 {
		return nil
	}
	if refused > namedImports {
		names = append(names, fmt.Sprintf("%d more", refused-namedImports))
	}
	hint := fmt.Sprintf("a module can have functions of %s and of %s", wasiModule, hostModule)
	switch {
	case server:
		hint = fmt.Sprintf("a server can have functions only of %s", wasiModule)
	case len(keys) > 0:
		hint = "grant it with " + strings.Join(keys, " and ") + " in the configuration if the module is to have it"
	}
	return fmt.Errorf("it imports what it is not granted: %s; %s", strings.Join(names, ", "), hint)
}

// imports reports whether one of the modules that are imported from is such.
func imports(all []rewrite.Import, such func(module string) bool) bool {
	return slices.ContainsFunc(all, func(in rewrite.Import) bool { return such(in.Module) })
}

// checkSignatures finds out which ABI a module follows. Imports of a wrong
// type would fail only when a call links them; here they fail at load.
func (fs functions) checkSignatures(compiled wazero.CompiledModule) (kind, error) {
	exports := compiled.ExportedFunctions()
	for name, want := range abi {
		if f := exports[name]; f != nil && !sameType(f, want[0], want[1]) {
			return "", fmt.Errorf("it exports %s with the wrong types; they must be %v -> %v", name, typeNames(want[0]), typeNames(want[1]))
		}
	}
	asks, extismImports := false, false
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == rewrite.MeterModule {
			continue
		}
		if host := fs[module][name]; !sameType(f, host.ParamTypes(), host.ResultTypes()) {
			return "", otherTypes(module, name, host)
		}
		asks = asks || module == hostModule && name != "log"
		extismImports = extismImports || extism.IsPlugin(module)
	}
	if compiled.ExportedMemories()[exportMemory] == nil {
		return "", errors.New("it exports no memory of the name memory")
	}
	if asks && exports[exportRealloc] == nil {
		return "", fmt.Errorf("it imports functions of %s but does not export %s, into which their answers go", hostModule, exportRealloc)
	}
	switch {
	case extismImports:
		return plugin, nil
	case exports[exportCall] != nil && exports[exportRealloc] != nil:
		return reactor, nil
	case exports[exportCall] != nil:
		return "", fmt.Errorf("it exports %s but not %s", exportCall, exportRealloc)
	case exports[exportStart] != nil:
		return command, nil
	}
	return "", fmt.Errorf("it exports neither %s (a WASI command) nor %s (a reactor)", exportStart, exportCall)
}

func otherTypes(module, name string, host api.FunctionDefinition) error {
	return fmt.Errorf("it imports %s.%s with the wrong types; they must be %v -> %v", module, name, typeNames(host.ParamTypes()), typeNames(host.ResultTypes()))
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

// missing reports whether there is nothing here by this import's name, or a function of
// WASI of another form: there are versions of some.
func (fs functions) missing(i rewrite.Import) bool {
	return !i.Function || fs[i.Module][i.Name] == nil || fs.otherForm(i)
}

func (fs functions) otherForm(i rewrite.Import) bool {
	here := fs[i.Module][i.Name]
	return here != nil && ofWASI(i) && (len(here.ParamTypes()) != i.Params || len(here.ResultTypes()) != i.Results)
}

func readsInput(i rewrite.Import) bool { return ofWASI(i) && i.Name == "fd_read" }

func exits(i rewrite.Import) bool { return ofWASI(i) && i.Name == "proc_exit" }

func ofWASI(i rewrite.Import) bool { return i.Module == wasiModule || i.Module == unstableModule }
