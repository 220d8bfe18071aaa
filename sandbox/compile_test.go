package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/testing/bombs"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
	"github.com/wasmgate/wasmgate/sandbox/internal/compiler"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

func TestCompile(t *testing.T) {
	ok := func() *guest { return reactor(say(number(1))) }
	with := func(f func(*guest)) []byte { g := ok(); f(g); return g.bytes() }
	table := func(limits ...any) []byte { return with(func(g *guest) { g.table = join(0x70, join(limits...)) }) }
	imports := func(n int, module, function string, kind []byte) []byte {
		g := newGuest()
		for range n {
			g.link(module, function, kind)
		}
		return g.bytes()
	}
	many := func(n int) []byte {
		return with(func(g *guest) {
			void := g.typ("", "")
			for range n - len(g.functions) {
				g.functions, g.code = append(g.functions, void), append(g.code, join(2, 0, 0x0b))
			}
		})
	}
	data := func(at []byte, size uint32, content string) []byte {
		body := join(1, 0, at, 0x0b, leb(size), []byte(content))
		return join(ok().bytesWithout(), 11, leb(uint32(len(body))), body, ok().custom[0])
	}
	elements := func(segments int, size uint32) []byte {
		one := join(0, number(0), 0x0b, leb(size), make([]byte, size))
		all := join(leb(uint32(segments)), bytes.Repeat(one, segments))
		return join(raw(1, 1, 0x60, 0, 0), 3, leb(2), 1, 0, 4, leb(6), 1, 0x70, 0, leb(1<<18), 9, leb(uint32(len(all))), all, 10, leb(4), 1, 2, 0, 0x0b)
	}
	bare := newGuest()
	bare.function("tool_call", i32+i32+i32+i32, i32, number(0))
	nothing := newGuest()
	nothing.function("main", "", "", 0x01)
	wrong := newGuest()
	wrong.function("_start", i32, "", 0x01)
	badWASI := newGuest()
	badWASI.wasi("fd_write", i32, i32)
	badWASI.function("_start", "", "", 0x01)
	unmade := newGuest()
	unmade.function("_start", "", "", 0x01)
	given := &sandbox.Manifest{Tools: []sandbox.Tool{{Name: "t", InputSchema: json.RawMessage(`{}`)}}}

	tests := map[string]struct {
		wasm     []byte
		manifest *sandbox.Manifest
		want     string // in the error; empty for none
	}{
		"a module that carries its manifest": {ok().bytes(), nil, ""},
		"a module with its manifest beside":  {unmade.bytes(), given, ""},
		"a manifest too many":                {ok().bytes(), given, "different from the one that it carries"},
		"no manifest":                        {unmade.bytes(), nil, "it has no manifest"},
		"an empty manifest":                  {unmade.bytes(), &sandbox.Manifest{}, "has 0 tools"},
		"two manifests inside":               {with(func(g *guest) { g.section("wasmgate", []byte(manifest)) }), nil, "two sections wasmgate"},
		"nothing":                            {nil, nil, "not a WebAssembly module"},
		"text":                               {[]byte("(module)"), nil, "not a WebAssembly module"},
		"a component":                        {[]byte("\x00asm\x0d\x00\x01\x00"), nil, "a WebAssembly component, not a core module: build it for the target wasm32-wasip1"},
		"another version":                    {[]byte("\x00asm\x02\x00\x00\x00"), nil, "version 2"},
		"a module that is cut off":           {ok().bytes()[:40], nil, "malformed, cut off"},
		"too large":                          {make([]byte, 64<<20+1), nil, "more than 67108864"},
		"an invalid body":                    {reactor(0x6a).bytes(), nil, "invalid function"},
		"an unknown function of WASI":        {imports(1, "wasi_snapshot_preview1", "sock_dial", []byte{0, 0}), nil, `"wasi_snapshot_preview1.sock_dial"; a module can have functions of wasi_snapshot_preview1 and of wasmgate`},
		"a function of another module":       {imports(1, "env", "system", []byte{0, 0}), nil, `not granted: "env.system";`},
		"many refused imports":               {imports(10, "env", "f", []byte{0, 0}), nil, `"env.f", 2 more`},
		"an imported memory":                 {imports(1, "env", "memory", []byte{2, 0, 1}), nil, `"env.memory (not a function)"`},
		"WASI in name only":                  {imports(1, "wasi_snapshot_preview1", "fd_write", []byte{2, 0, 1}), nil, `"wasi_snapshot_preview1.fd_write (not a function)"`},
		"a function of WASI as another type": {badWASI.bytes(), given, "it imports wasi_snapshot_preview1.fd_write with the wrong types; they must be [i32 i32 i32 i32] -> [i32]"},
		"no way in":                          {nothing.bytes(), given, "exports neither _start (a WASI command) nor tool_call (a reactor)"},
		"no allocator":                       {bare.bytes(), given, "exports tool_call but not cabi_realloc"},
		"a way in of another type":           {wrong.bytes(), given, "it exports _start with the wrong types; they must be [] -> []"},
		"no memory":                          {with(func(g *guest) { g.memory = "mem" }), nil, "exports no memory"},
		"more memory than it may have":       {with(func(g *guest) { g.pages = 3 }), nil, "starts with 196608 bytes of memory, its limit is 131072"},
		"more memory than there is":          {with(func(g *guest) { g.pages = 1 << 31 }), nil, "starts with"},
		"a table":                            {table(0, leb(10)), nil, ""},
		"100,000 functions":                  {raw(3, leb(100_000), bytes.Repeat([]byte{0}, 100_000)), nil, "100000 functions, more than 65536"},
		"100,000 functions with their code":  {many(100_000), nil, "100000 functions, more than 65536"},
		"data beyond its memory":             {data(number(65535), 2, "ab"), nil, "a data segment that does not fit into its memory"},
		"data beyond any memory":             {data(number(-1), 2, "ab"), nil, "a data segment that does not fit into its memory"},
		"data of 60 MiB in a small memory":   {data(number(0), 60<<20, strings.Repeat("a", 60<<20)), nil, "a data segment that does not fit into its memory"},
		"data that claims to be giant":       {data(number(0), 1<<31, "ab"), nil, "malformed"},
		"the name of the meter's fuel":       {with(func(g *guest) { g.exports = append(g.exports, join(name("wasmgate:fuel"), 3, 0)) }), nil, "duplicates name"},
		"the name of a global that is reset": {with(func(g *guest) { g.exports = append(g.exports, join(name("wasmgate:global:0"), 3, 0)) }), nil, "duplicates name"},
		"too many globals":                   {raw(6, leb(65537), bytes.Repeat(join(0x7f, 0, number(0), 0x0b), 65537)), nil, "65537 globals, more than 65536"},
		"too many exports":                   {raw(7, leb(65537), bytes.Repeat([]byte{0, 0, 0}, 65537)), nil, "65537 exports, more than 65536"},
		"a function of endless parameters":   {raw(1, 1, 0x60, leb(1001), bytes.Repeat([]byte{0x7f}, 1001), 0), nil, "1001 parameters or results, more than 1000"},
		"elements again and again":           {elements(2, 1<<17+1), nil, "element segments of 262146 entries and more; 262144 is the most"},
		"a function of nested blocks":        {reactor(bytes.Repeat([]byte{0x02, 0x40}, 50_000), bytes.Repeat([]byte{0x0b}, 50_000), say(number(1))).bytes(), nil, "too costly to compile"},
		"a function of nested loops":         {reactor(bytes.Repeat([]byte{0x03, 0x40}, 10_000), bytes.Repeat([]byte{0x0b}, 10_000), say(number(1))).bytes(), nil, "too costly to compile"},
		"a function of branches":             {reactor(0x02, 0x40, bytes.Repeat([]byte{0x41, 1, 0x0d, 0}, 50_000), 0x0b, say(number(1))).bytes(), nil, "too costly to compile"},
		"a jump table without end":           {reactor(0x02, 0x40, number(0), 0x0e, leb(50_000), make([]byte, 50_001), 0x0b, say(number(1))).bytes(), nil, "too costly to compile"},
		"a large table":                      {table(0, leb(1<<27)), nil, "a table of 134217728 entries; 262144 is the most"},
		"a table with a strange flag":        {table(4, leb(1)), nil, "of an unsupported kind"},
		"too many functions":                 {raw(3, leb(65537), bytes.Repeat([]byte{0}, 65537)), nil, "65537 functions, more than 65536"},
		"too many types":                     {raw(1, leb(65537), bytes.Repeat([]byte{0x60, 0, 0}, 65537)), nil, "65537 types, more than 65536"},
		"too many imports":                   {raw(2, leb(65537), bytes.Repeat([]byte{0, 0, 0, 0}, 65537)), nil, "65537 imports, more than 65536"},
		"the meter, imported":                {imports(1, "wasmgate:meter", "fuel", []byte{0, 0}), nil, `not granted: "wasmgate:meter.fuel";`},
		"more types than bytes":              {raw(1, leb(1<<31)), nil, "malformed"},
		"more parameters than bytes":         {raw(1, 1, 0x60, leb(1<<31), 0), nil, "malformed"},
		"more imports than bytes":            {raw(2, leb(1<<31)), nil, "malformed"},
		"more functions than bytes":          {raw(3, leb(1<<10), 0), nil, "malformed"},
		"more tables than bytes":             {raw(4, leb(1<<31)), nil, "malformed"},
		"more globals than bytes":            {raw(6, leb(1<<31)), nil, "malformed"},
		"more exports than bytes":            {raw(7, leb(1<<31)), nil, "malformed"},
		"a name longer than the bytes":       {raw(7, 1, leb(1<<31)), nil, "malformed"},
		"more elements than bytes":           {raw(9, leb(1<<31)), nil, "malformed"},
		"more functions in an element":       {raw(9, 1, 0, 0x41, 0, 0x0b, leb(1<<31)), nil, "malformed"},
		"more expressions in an element":     {raw(9, 1, 7, 0x70, leb(1<<31)), nil, "malformed"},
		"more bodies than bytes":             {raw(10, leb(1<<31)), nil, "malformed"},
		"a body longer than the bytes":       {raw(10, 1, leb(1<<31)), nil, "malformed"},
		"a function with endless locals":     {raw(10, 1, 7, 1, leb(1<<31), 0x7f), nil, "2147483648 local variables"},
		"many locals in many functions":      {raw(10, 22, bytes.Repeat([]byte{6, 1, 0xd0, 0x86, 0x03, 0x7f, 0x0b}, 22)), nil, "1100000 in all"},
		"more segments than bytes":           {raw(11, leb(1<<31)), nil, "malformed"},
		"data longer than the bytes":         {raw(11, 1, 1, leb(1<<31)), nil, "malformed"},
		"tags of exceptions":                 {raw(13, 0), nil, "not in WebAssembly 2.0"},
		"names without end":                  {with(func(g *guest) { g.section("name", join(1, 5, leb(1<<31))) }), nil, ""},
	}
	r := newRuntime(t, sandbox.Config{Limits: sandbox.Limits{Memory: 2<<16 + 100}})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := r.Compile(t.Context(), tt.wasm, sandbox.ModuleConfig{Name: "m", Manifest: tt.manifest})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), `sandbox: compile module "m": `)):
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestCodeOfAllModules checks that all modules of a runtime have so much machine code
// together and no more, and that one that is closed counts no longer.
func TestCodeOfAllModules(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	first := compile(t, r, reactor(say(number(1))).bytes(), sandbox.ModuleConfig{})
	r.BoundCode(r.Code() + 100)
	_, err := r.Compile(t.Context(), reactor(say(number(2))).bytes(), sandbox.ModuleConfig{Name: "second"})
	var costly *rewrite.CostError
	if !errors.As(err, &costly) || !strings.Contains(err.Error(), "and all together may have ") {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Code() != 0 {
		t.Error("modules that are closed, or were refused, have", r.Code(), "bytes of machine code")
	}
	compile(t, r, reactor(say(number(2))).bytes(), sandbox.ModuleConfig{})
}

// TestAQuarterWithoutAChild checks that a program without a child, which these tests are,
// refuses what it could not end.
func TestAQuarterWithoutAChild(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	if compiler.Apart() {
		t.Fatal("these tests are to compile in their own process")
	}
	large := bombs.Function{Type: 0, Body: bytes.Repeat([]byte{0x41, 0, 0x1a}, 400_000)} // more memory than a quarter of what a module may take, not more than a function may
	wasm := bombs.Shape{More: []bombs.Function{large, large}}.WASM()
	m, err := rewrite.Decode(wasm)
	if err == nil {
		_, err = m.Seal()
	}
	if err != nil {
		t.Fatal("where there is a child: ", err)
	}
	_, err = r.Compile(t.Context(), wasm, sandbox.ModuleConfig{Manifest: &sandbox.Manifest{Tools: []sandbox.Tool{{Name: "t", InputSchema: json.RawMessage(`{}`)}}}})
	var costly *rewrite.CostError
	if !errors.As(err, &costly) || !strings.Contains(err.Error(), "more than a 4th of what it may where the compiler can be ended") {
		t.Error(err)
	}
}

// TestTableGrow checks that a table without a maximum of its own has one: the
// engine would let it grow to gigabytes under any memory limit.
func TestTableGrow(t *testing.T) {
	tests := map[string]struct {
		limits []byte
		by     int32
		want   string
	}{
		"up to the bound":                    {[]byte{0, 0}, 1 << 18, "1"},
		"beyond the bound":                   {[]byte{0, 0}, 1<<18 + 1, "0"},
		"up to the maximum that it declares": {[]byte{1, 0, 5}, 5, "1"},
		"beyond that maximum":                {[]byte{1, 0, 5}, 6, "0"},
		"to gigabytes":                       {join(1, 0, leb(1<<31)), 1 << 28, "0"},
	}
	r := newRuntime(t, sandbox.Config{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := reactor(0xd0, 0x70, number(tt.by), 0xfc, 15, 0, number(-1), 0x47, 0x21, 4, say(get(4)))
			g.table = join(0x70, tt.limits)
			m := compile(t, r, g.bytes(), sandbox.ModuleConfig{})
			if res, err := m.Call(t.Context(), "t", nil, sandbox.CallConfig{}); err != nil || string(res.Output) != tt.want {
				t.Errorf("got %s, %v, want %s (1 if the table grew)", res.Output, err, tt.want)
			}
		})
	}
}

func TestParseManifest(t *testing.T) {
	one := func(members string) string { return `{"tools":[{"name":"t","inputSchema":{}` + members + `}]}` }
	tests := map[string]struct{ json, want string }{
		"the least":                  {one(""), ""},
		"everything":                 {one(`,"title":"T","description":"D","outputSchema":{},"annotations":{}`), ""},
		"YAML":                       {"tools:\n  - name: t\n    inputSchema: {}\n", ""},
		"no mapping":                 {"x", "must be a mapping"},
		"two values":                 {one("") + "{}", "not allowed"},
		"not UTF-8":                  {one(`,"title":"` + "\xff" + `"`), "not UTF-8"},
		"a wish that is not known":   {`{"http":[],"tools":[]}`, `unknown field "http"`},
		"a member that is not known": {one(`,"outputschemas":{}`), `unknown field "outputschemas"`},
		"no tools":                   {`{}`, "has 0 tools"},
		"the same name twice":        {`{"tools":[{"name":"t","inputSchema":{}},{"name":"t","inputSchema":{}}]}`, `names tool "t" twice`},
		"no name":                    {`{"tools":[{"inputSchema":{}}]}`, `a tool named ""`},
		"a control character":        {`{"tools":[{"name":"a\u001bb","inputSchema":{}}]}`, `a tool named "a\x1bb"`},
		"a name without end":         {`{"tools":[{"name":"` + strings.Repeat("a", 129) + `","inputSchema":{}}]}`, "1 to 128 bytes"},
		"no input schema":            {`{"tools":[{"name":"t"}]}`, "inputSchema is not a JSON object"},
		"a boolean schema":           {`{"tools":[{"name":"t","inputSchema":true}]}`, "inputSchema is not a JSON object"},
		"an output schema in text":   {one(`,"outputSchema":"{}"`), "outputSchema is not a JSON object"},
		"annotations in a list":      {one(`,"annotations":[]`), "annotations is not a JSON object"},
		"too large":                  {strings.Repeat(" ", 1<<20) + one(""), "more than 1048576"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := sandbox.ParseManifest([]byte(tt.json))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestTools(t *testing.T) {
	r := newRuntime(t, sandbox.Config{})
	tool := sandbox.Tool{Name: "t", Title: "T", Description: "D", InputSchema: json.RawMessage(`{}`)}
	m := compile(t, r, command(1, 0).bytesWithout(), sandbox.ModuleConfig{Manifest: &sandbox.Manifest{Tools: []sandbox.Tool{tool}}})
	m.Tools()[0].Name = "changed"
	if diff := cmp.Diff([]sandbox.Tool{tool}, m.Tools()); diff != "" {
		t.Errorf("the tools differ (-want +got):\n%s", diff)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// FuzzCompile compiles modules that were changed, and calls those that are
// accepted, under tiny limits and with all grants. It begins with the modules of
// the tests, hostile ones among them, and with some that compilers made. None may
// reach a panic, last long, or leave anything behind.
func FuzzCompile(f *testing.F) {
	unraced.Long(f)
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"), []byte(nil))
	for _, wasm := range modules(f) {
		f.Add(wasm, []byte(nil))
	}
	try := trial(f)
	f.Fuzz(func(t *testing.T, wasm, changes []byte) { try(t, changed(wasm, changes)) })
}

// TestChangedModules does the same for a moment, at random.
func TestChangedModules(t *testing.T) {
	unraced.Long(t)
	rnd := seed.Rand(t)
	all, try, accepted := modules(t), trial(t), 0
	rounds := unraced.Fewer(3000)
	for range rounds {
		var changes []byte
		for range 1 + rnd.IntN(2) {
			changes = append(changes, byte(rnd.Uint32()), byte(rnd.Uint32()), 1<<rnd.IntN(8))
		}
		wasm := changed(all[rnd.IntN(len(all))], changes)
		if try(t, wasm) {
			accepted++
		}
		if t.Failed() {
			t.Fatalf("the module is %x", wasm)
		}
	}
	if t.Logf("%d of %d were accepted", accepted, rounds); accepted < rounds/100 {
		t.Error("hardly any module was accepted: this tests nothing")
	}
}

// changed returns a module with some bytes changed: each three bytes of changes
// are a place and what to add there. So most sections keep their places.
func changed(wasm, changes []byte) []byte {
	wasm = slices.Clone(wasm)
	for ; len(changes) >= 3 && len(wasm) > 0; changes = changes[3:] {
		wasm[(int(changes[0])<<8|int(changes[1]))%len(wasm)] += changes[2]
	}
	return wasm
}

// trial returns a function that compiles a module, calls its first tool, and
// reports whether it could be called.
func trial(tb testing.TB) func(t *testing.T, wasm []byte) bool {
	grants := sandbox.Grants{HTTP: true, KV: true, Dirs: []sandbox.Dir{{Path: tb.TempDir()}}, Config: map[string]string{"A": "b"}}
	host := fakeHost{
		http: func(context.Context) (sandbox.HTTPResponse, error) {
			return sandbox.HTTPResponse{Status: 200, Header: map[string][]string{"A": {"b"}}, Body: []byte("body")}, nil
		},
		file: func(context.Context) error { return nil },
	}
	r := newRuntime(tb, sandbox.Config{Limits: sandbox.Limits{
		Timeout: 50 * time.Millisecond, Fuel: 1e6, Memory: 1 << 20, Stack: 1 << 20, Output: 1 << 10, Log: 100, HostCalls: 20, Files: 1 << 10,
	}})
	before := takeVitals(tb)
	return func(t *testing.T, wasm []byte) bool {
		m, err := r.Compile(t.Context(), wasm, sandbox.ModuleConfig{Grants: grants})
		accepted := err == nil
		if accepted {
			_, err = m.Call(t.Context(), m.Tools()[0].Name, nil, sandbox.CallConfig{Host: host})
			if _, err := m.CheckIdle(); err != nil {
				t.Error(err)
			}
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err != nil && strings.Contains(err.Error(), "panic in the ") {
			t.Error(err)
		}
		if n := runtime.NumGoroutine(); n > before.goroutines+20 { // some are the fuzzer's own
			t.Errorf("%d goroutines, %d before", n, before.goroutines)
		}
		if n := mappings(t, "wasm-image"); n > before.images {
			t.Errorf("%d mappings of images, %d before", n, before.images)
		}
		return accepted
	}
}

// modules are those of the tests, and of the engine's tests some that TinyGo, Zig
// and others compiled.
func modules(t testing.TB) (all [][]byte) {
	for _, g := range []*guest{reactor(say(number(1))), command(1, 0), newGuest(), scribbler(false), scribbler(true), opener()} {
		all = append(all, g.bytes())
	}
	for _, h := range hostile() {
		all = append(all, h.guest.bytes())
	}
	for _, some := range []map[string]attack{machineAttacks(), outputAttacks(), hostAttacks()} {
		for _, a := range some {
			all = append(all, a.guest.bytes())
		}
	}
	engine, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Logf("no modules of the engine's tests: %v", err)
		return all
	}
	programs := filepath.Join(strings.TrimSpace(string(engine)), "imports", "wasi_snapshot_preview1")
	var files []string
	for _, folder := range []string{"testdata", filepath.Join("testdata", "*"), filepath.Join("example", "testdata", "*")} {
		some, _ := filepath.Glob(filepath.Join(programs, folder, "*.wasm"))
		files = append(files, some...)
	}
	for _, file := range files {
		if wasm, err := os.ReadFile(file); err == nil && len(wasm) < 64<<10 {
			all = append(all, join(wasm, newGuest().section("wasmgate", []byte(manifest)).custom[0]))
		}
	}
	return all
}

// FuzzParseManifest checks that what is accepted stays the same when it is
// written and read again.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte(`{"tools":[{"name":"a","title":"\u00e9","inputSchema":{"a":[1e5]},"outputSchema":{},"annotations":{}}]}`))
	f.Add([]byte(`{"tools":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := sandbox.ParseManifest(b)
		if err != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := sandbox.ParseManifest(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		again, err := json.Marshal(second)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written, again) {
			t.Errorf("written %s, then %s", written, again)
		}
	})
}
