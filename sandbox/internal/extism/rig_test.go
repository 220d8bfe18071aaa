package extism_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

type pluginKey struct{}

func with(ctx context.Context, p *extism.Plugin) context.Context {
	return context.WithValue(ctx, pluginKey{}, p)
}

func of(ctx context.Context) *extism.Plugin {
	p, _ := ctx.Value(pluginKey{}).(*extism.Plugin)
	return p
}

// newRuntime returns a runtime with the host functions and WASI.
func newRuntime(t testing.TB) wazero.Runtime {
	t.Helper()
	return runtimeOf(t, wazero.NewRuntimeConfig())
}

// newInterpreter returns one that starts plug-ins written in Go in a tenth of a
// second; under the race detector, compiling one takes more than ten.
func newInterpreter(t testing.TB) wazero.Runtime {
	t.Helper()
	return runtimeOf(t, wazero.NewRuntimeConfigInterpreter())
}

func runtimeOf(t testing.TB, cfg wazero.RuntimeConfig) wazero.Runtime {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), cfg)
	t.Cleanup(func() { r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(t.Context(), r)
	if err := extism.Instantiate(t.Context(), r, of); err != nil {
		t.Fatal(err)
	}
	return r
}

// build compiles the Go plug-in in dir.
func build(t testing.TB, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plugin.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", dir, err, msg)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// instance makes and initializes an instance of a plug-in.
func instance(t testing.TB, r wazero.Runtime, wasm []byte) api.Module {
	t.Helper()
	m, err := r.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A bare guest does one host call at a time, as the test says.
type bare struct {
	t   testing.TB
	mod api.Module
	p   *extism.Plugin
}

func newBare(t testing.TB) *bare {
	t.Helper()
	mod, err := newRuntime(t).InstantiateWithConfig(t.Context(), bareModule(), wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	return &bare{t, mod, &extism.Plugin{}}
}

// try does a host call and returns its result, 0 if it has none.
func (g *bare) try(name string, args ...uint64) (uint64, error) {
	g.t.Helper()
	res, err := g.mod.ExportedFunction(name).Call(with(g.t.Context(), g.p), args...)
	if err != nil || len(res) == 0 {
		return 0, err
	}
	return res[0], nil
}

// do does a host call that must not end the guest.
func (g *bare) do(name string, args ...uint64) uint64 {
	g.t.Helper()
	res, err := g.try(name, args...)
	if err != nil {
		g.t.Fatal(err)
	}
	return res
}

// put copies s to the heap.
func (g *bare) put(s string) uint64 {
	g.t.Helper()
	at := g.do("alloc", uint64(len(s)))
	for i := range len(s) {
		g.do("store_u8", at+uint64(i), uint64(s[i]))
	}
	return at
}

// get copies the block at an offset from the heap.
func (g *bare) get(at uint64) string {
	g.t.Helper()
	b := make([]byte, g.do("length", at))
	for i := range b {
		b[i] = byte(g.do("load_u8", at+uint64(i)))
	}
	return string(b)
}

// bareModule returns a module that imports every host function and exports, by
// the same name, a function that does nothing but call it.
func bareModule() []byte {
	var types, imports, functions, exports, bodies [][]byte
	all := extism.Imports()
	total := 0
	for _, names := range all {
		total += len(names)
	}
	for _, module := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[module])) {
			n := len(types)
			f := all[module][name]
			types = append(types, slices.Concat([]byte{0x60}, vector(f.Params), vector(f.Results)))
			imports = append(imports, slices.Concat(vector([]byte(module)), vector([]byte(name)), []byte{0}, leb(n)))
			functions = append(functions, leb(n))
			exports = append(exports, slices.Concat(vector([]byte(name)), []byte{0}, leb(total+n)))
			body := []byte{0} // no locals
			for i := range f.Params {
				body = append(body, 0x20, byte(i))
			}
			body = slices.Concat(body, []byte{0x10}, leb(n), []byte{0x0b})
			bodies = append(bodies, vector(body))
		}
	}
	wasm := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id    byte
		items [][]byte
	}{{1, types}, {2, imports}, {3, functions}, {7, exports}, {10, bodies}} {
		wasm = slices.Concat(wasm, []byte{s.id}, vector(slices.Concat(leb(len(s.items)), slices.Concat(s.items...))))
	}
	return wasm
}

func vector(b []byte) []byte { return slices.Concat(leb(len(b)), b) }

func leb(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// A logbook takes what guests log.
type logbook []string

func (l *logbook) log(level, message string) { *l = append(*l, level+": "+message) }

func (l *logbook) String() string { return strings.Join(*l, "\n") }
