package sandbox_test

import (
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

func embedded(t testing.TB) []byte {
	t.Helper()
	wasm, err := sandbox.EmbeddedTools()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// start does what a program does at its start to have a module ready.
func start(b *testing.B, dir string, wasm []byte) {
	r, err := sandbox.New(b.Context(), sandbox.Config{CacheDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.Compile(b.Context(), wasm, sandbox.ModuleConfig{}); err != nil {
		b.Fatal(err)
	}
	if err := r.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart measures a start with the embedded tools: without a compile
// cache, with a filled one, and of that the unpacking alone.
func BenchmarkStart(b *testing.B) {
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			start(b, "", embedded(b))
		}
	})
	b.Run("cached", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "cache")
		start(b, dir, embedded(b))
		b.ReportAllocs()
		for b.Loop() {
			start(b, dir, embedded(b))
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			embedded(b)
		}
	})
}

// BenchmarkFirstCall measures the first call of an embedded tool in a program whose
// cache was filled before.
func BenchmarkFirstCall(b *testing.B) {
	cfg := sandbox.Config{CacheDir: filepath.Join(b.TempDir(), "cache")}
	call := func(r *sandbox.Runtime) {
		m, err := sandbox.LoadEmbedded(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Call(b.Context(), "hash", []byte(`{"text":"abc"}`), sandbox.CallConfig{}); err != nil {
			b.Fatal(err)
		}
	}
	open := func() *sandbox.Runtime {
		r, err := sandbox.New(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	finish := func(r *sandbox.Runtime) {
		if err := r.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	r := open()
	call(r)
	finish(r)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r := open()
		b.StartTimer()
		call(r)
		b.StopTimer()
		finish(r)
		b.StartTimer()
	}
}

// BenchmarkCompile measures a tiny module: the floor of a load.
func BenchmarkCompile(b *testing.B) {
	r := newRuntime(b, sandbox.Config{})
	wasm := reactor(answer(0, get(argsPtr), get(argsLen))).bytes()
	b.ReportAllocs()
	for b.Loop() {
		if err := compile(b, r, wasm, sandbox.ModuleConfig{}).Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMeter measures the rewriting of the embedded tools, and how much
// larger they become.
func BenchmarkMeter(b *testing.B) {
	wasm := embedded(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(wasm)))
	var size int
	for b.Loop() {
		m, err := rewrite.Decode(wasm)
		if err != nil {
			b.Fatal(err)
		}
		metered, err := m.Meter()
		if err != nil {
			b.Fatal(err)
		}
		size = len(metered)
	}
	b.ReportMetric(float64(size)/float64(len(wasm)), "growth")
}

// BenchmarkCall measures whole calls: instance, deadline, call, checks.
func BenchmarkCall(b *testing.B) {
	r := newRuntime(b, sandbox.Config{CacheDir: cache})
	tiny := compile(b, r, reactor(answer(0, get(argsPtr), get(argsLen))).bytes(), sandbox.ModuleConfig{})
	shell := compile(b, r, command(1, 0).bytes(), sandbox.ModuleConfig{})
	tools := compile(b, r, embedded(b), sandbox.ModuleConfig{})
	for _, bb := range []struct {
		name   string
		module *sandbox.Module
		tool   string
		args   string
	}{
		{"tiny_reactor", tiny, "t", `{"a":1}`},
		{"tiny_command", shell, "t", `{"a":1}`},
		{"hash", tools, "hash", `{"text":"hello"}`},
		{"json_query", tools, "json_query", `{"query":".a[]|select(.b>1)","data":{"a":[{"b":1},{"b":2}]}}`},
		{"text_diff", tools, "text_diff", `{"old":"a\nb\nc\n","new":"a\nB\nc\n"}`},
		{"html_to_text", tools, "html_to_text", `{"html":"<h1>A</h1><p>b &amp; <a href=x>c</a>"}`},
		{"csv_query", tools, "csv_query", `{"csv":"a,b\n1,2\n3,4\n","sort":[{"column":"a","descending":true}]}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			var peak int64
			var fuel uint64
			for b.Loop() {
				res, err := bb.module.Call(b.Context(), bb.tool, []byte(bb.args), sandbox.CallConfig{})
				if err != nil || res.IsError {
					b.Fatal(string(res.Output), err)
				}
				peak, fuel = res.MemoryPeak, res.Fuel
			}
			b.ReportMetric(float64(peak), "guest-B")
			b.ReportMetric(float64(fuel), "fuel")
		})
	}
}
