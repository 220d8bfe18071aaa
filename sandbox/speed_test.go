package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/sandbox"
)

// payload is some 400 bytes of JSON.
var payload = []byte(`{"query":"select name, total from invoices where total > 100 order by total desc","limit":25,"offset":0,` +
	`"filters":[{"column":"country","op":"in","value":["DE","FR","IT","ES"]},{"column":"paid","op":"eq","value":true},` +
	`{"column":"note","op":"like","value":"%shipping%"}],"tags":["finance","quarterly","draft"],` +
	`"requested_by":{"name":"Ada Example","team":"reporting","id":184467440737095516}}`)

var built sync.Map // guests by name, so that each is built once

// speedGuest builds a guest of testdata/speed, or skips.
func speedGuest(b *testing.B, name string) []byte {
	if wasm, ok := built.Load(name); ok {
		return wasm.([]byte)
	}
	var wasm []byte
	if name == "goreactor" {
		wasm = goGuest(b, filepath.Join("testdata", "speed", name), "c-shared")
	} else {
		wasm = clangGuest(b, name)
	}
	built.Store(name, wasm)
	return wasm
}

func clangGuest(b *testing.B, name string) []byte {
	out := filepath.Join(b.TempDir(), name+".wasm")
	args := []string{"--target=wasm32-wasi", "-O2", "-o", out, filepath.Join("testdata", "speed", name+".c")}
	if name == "reactor" {
		args = append(args, "-nostdlib", "-Wl,--no-entry")
	}
	toolchain.Need(b, "clang")
	if text, err := exec.CommandContext(b.Context(), "clang", args...).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

var echoes = sandbox.Manifest{Tools: []sandbox.Tool{{Name: "t", InputSchema: []byte(`{"type":"object"}`)}}}

// BenchmarkSpeed measures one call of guests in C and Go, on 400 bytes of JSON:
// isolated, metered and with a deadline, as [sandbox.Module.Call] makes it; into
// a live instance, by the engine alone, without any of that; with an instance
// for each call, by the engine alone; and, in Go, as a process for each call.
func BenchmarkSpeed(b *testing.B) {
	for _, guest := range []string{"reactor", "command", "goreactor"} {
		b.Run(guest, func(b *testing.B) {
			wasm := speedGuest(b, guest)
			b.Run("isolated", func(b *testing.B) { benchIsolated(b, wasm, echoes) })
			if guest == "goreactor" {
				warm := echoes
				warm.Snapshot, warm.Warm = sandbox.SnapshotWarm, &sandbox.Sample{Tool: "t", Arguments: payload}
				b.Run("isolated-warm", func(b *testing.B) { benchIsolated(b, wasm, warm) })
			}
			instance := echoes
			instance.Isolation = sandbox.IsolationInstance
			b.Run("isolated-instance", func(b *testing.B) { benchIsolated(b, wasm, instance) })
			if guest != "command" {
				b.Run("unisolated", func(b *testing.B) { benchUnisolated(b, wasm) })
			}
			b.Run("engine", func(b *testing.B) { benchEngine(b, wasm) })
			if guest == "goreactor" {
				b.Run("process", benchProcess)
			}
		})
	}
}

func benchIsolated(b *testing.B, wasm []byte, manifest sandbox.Manifest) {
	m := compile(b, newRuntime(b, sandbox.Config{CacheDir: cache}), wasm, sandbox.ModuleConfig{Manifest: &manifest})
	b.ReportAllocs()
	for b.Loop() {
		if res, err := m.Call(b.Context(), "t", payload, sandbox.CallConfig{}); err != nil || res.IsError {
			b.Fatal(string(res.Output), err)
		}
	}
}

// BenchmarkParallel calls the Go reactor from one caller and from 16.
func BenchmarkParallel(b *testing.B) {
	wasm := speedGuest(b, "goreactor")
	warm := echoes
	warm.Snapshot, warm.Warm = sandbox.SnapshotWarm, &sandbox.Sample{Tool: "t", Arguments: payload}
	m := compile(b, newRuntime(b, sandbox.Config{CacheDir: cache}), wasm, sandbox.ModuleConfig{Manifest: &warm})
	call := func(b *testing.B) {
		if _, err := m.Call(b.Context(), "t", payload, sandbox.CallConfig{}); err != nil {
			b.Error(err)
		}
	}
	b.Run("1", func(b *testing.B) {
		for b.Loop() {
			call(b)
		}
	})
	b.Run("16", func(b *testing.B) {
		b.SetParallelism(8) // times GOMAXPROCS, 2
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call(b)
			}
		})
	})
}

// engine is the engine alone, with its own WASI.
func engine(b *testing.B) wazero.Runtime {
	r := wazero.NewRuntime(b.Context())
	b.Cleanup(func() { r.Close(context.WithoutCancel(b.Context())) })
	wasi_snapshot_preview1.MustInstantiate(b.Context(), r)
	return r
}

func benchUnisolated(b *testing.B, wasm []byte) {
	r := engine(b)
	mod, err := r.InstantiateWithConfig(b.Context(), wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		b.Fatal(err)
	}
	f := exported(mod)
	b.ReportAllocs()
	for b.Loop() {
		if err := f.call(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func benchEngine(b *testing.B, wasm []byte) {
	r := engine(b)
	compiled, err := r.CompileModule(b.Context(), wasm)
	if err != nil {
		b.Fatal(err)
	}
	request := append(append([]byte(`{"name":"t","arguments":`), payload...), '}')
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		mod, err := r.InstantiateModule(b.Context(), compiled, wazero.NewModuleConfig().WithName("").
			WithStartFunctions("_initialize", "_start").WithStdin(bytes.NewReader(request)).WithStdout(&out))
		var exit *sys.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 0) {
			b.Fatal(err)
		}
		if out.Len() > 0 { // a command
			continue
		}
		if err := exported(mod).call(b.Context()); err != nil {
			b.Fatal(err)
		}
		mod.Close(b.Context())
	}
}

// functions are those of a reactor.
type functions struct {
	mod                 api.Module
	realloc, call_, end api.Function
}

func exported(mod api.Module) functions {
	return functions{mod, mod.ExportedFunction("cabi_realloc"), mod.ExportedFunction("tool_call"), mod.ExportedFunction("cabi_post_tool_call")}
}

func (f functions) call(ctx context.Context) error {
	var params [4]uint64
	for i, s := range [][]byte{[]byte("t"), payload} {
		stack := [4]uint64{0, 0, 1, uint64(len(s))}
		if err := f.realloc.CallWithStack(ctx, stack[:]); err != nil {
			return err
		}
		f.mod.Memory().Write(uint32(stack[0]), s)
		params[2*i], params[2*i+1] = stack[0], uint64(len(s))
	}
	if err := f.call_.CallWithStack(ctx, params[:]); err != nil {
		return err
	}
	area, _ := f.mod.Memory().Read(uint32(params[0]), 12)
	view, ok := f.mod.Memory().Read(binary.LittleEndian.Uint32(area[4:]), binary.LittleEndian.Uint32(area[8:]))
	if !ok || area[0] != 0 {
		return errors.New("no answer")
	}
	_ = bytes.Clone(view)
	return f.end.CallWithStack(ctx, params[:1])
}

func benchProcess(b *testing.B) {
	program := filepath.Join(b.TempDir(), "process")
	cmd := exec.CommandContext(b.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("testdata", "speed", "goreactor")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	b.ReportAllocs()
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), program)
		cmd.Stdin = bytes.NewReader(payload)
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), `"seen"`) {
			b.Fatalf("%s, %v", out, err)
		}
	}
}
