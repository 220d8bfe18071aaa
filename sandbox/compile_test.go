package sandbox_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/wasmgate/wasmgate/sandbox"
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
		"a manifest too many":                {ok().bytes(), given, "a manifest is given for it, but it carries one"},
		"no manifest":                        {unmade.bytes(), nil, "it has no manifest"},
		"an empty manifest":                  {unmade.bytes(), &sandbox.Manifest{}, "names 0 tools"},
		"two manifests inside":               {with(func(g *guest) { g.section("wasmgate", []byte(manifest)) }), nil, "two sections wasmgate"},
		"nothing":                            {nil, nil, "not a WebAssembly module"},
		"text":                               {[]byte("(module)"), nil, "not a WebAssembly module"},
		"a component":                        {[]byte("\x00asm\x0d\x00\x01\x00"), nil, "a WebAssembly component, not a core module: build it for the target wasm32-wasip1"},
		"another version":                    {[]byte("\x00asm\x02\x00\x00\x00"), nil, "version 2"},
		"a module that is cut off":           {ok().bytes()[:40], nil, "malformed, cut off"},
		"too large":                          {make([]byte, 64<<20+1), nil, "more than 67108864"},
		"an invalid body":                    {reactor(0x6a).bytes(), nil, "invalid function"},
		"an unknown function of WASI":        {imports(1, "wasi_snapshot_preview1", "sock_dial", []byte{0, 0}), nil, `"wasi_snapshot_preview1.sock_dial"; functions of wasi_snapshot_preview1 and of wasmgate can be`},
		"a function of another module":       {imports(1, "env", "system", []byte{0, 0}), nil, `not granted: "env.system";`},
		"many refused imports":               {imports(10, "env", "f", []byte{0, 0}), nil, `"env.f", 2 more`},
		"an imported memory":                 {imports(1, "env", "memory", []byte{2, 0, 1}), nil, `"env.memory (not a function)"`},
		"WASI in name only":                  {imports(1, "wasi_snapshot_preview1", "fd_write", []byte{2, 0, 1}), nil, `"wasi_snapshot_preview1.fd_write (not a function)"`},
		"a function of WASI as another type": {badWASI.bytes(), given, "it imports wasi_snapshot_preview1.fd_write with types other than [i32 i32 i32 i32] -> [i32]"},
		"no way in":                          {nothing.bytes(), given, "exports neither _start (a WASI command) nor tool_call (a reactor)"},
		"no allocator":                       {bare.bytes(), given, "exports tool_call but not cabi_realloc"},
		"a way in of another type":           {wrong.bytes(), given, "it exports _start with types other than [] -> []"},
		"no memory":                          {with(func(g *guest) { g.memory = "mem" }), nil, "exports no memory"},
		"more memory than it may have":       {with(func(g *guest) { g.pages = 3 }), nil, "starts with 196608 bytes of memory, its limit is 131072"},
		"more memory than there is":          {with(func(g *guest) { g.pages = 1 << 31 }), nil, "starts with"},
		"a table":                            {table(0, leb(10)), nil, ""},
		"a large table":                      {table(0, leb(1<<27)), nil, "a table of 134217728 entries; 262144 is the most"},
		"a table with a strange flag":        {table(4, leb(1)), nil, "a form that is not supported"},
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
		"no JSON":                    {"x", "read the manifest"},
		"two values":                 {one("") + "{}", "more than one"},
		"not UTF-8":                  {one(`,"title":"` + "\xff" + `"`), "not UTF-8"},
		"a wish that is not known":   {`{"http":[],"tools":[]}`, `unknown field "http"`},
		"a member that is not known": {one(`,"outputschemas":{}`), `unknown field "outputschemas"`},
		"no tools":                   {`{}`, "names 0 tools"},
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

func FuzzCompile(f *testing.F) {
	for _, g := range []*guest{reactor(say(number(1))), command(1, 0), newGuest()} {
		f.Add(g.bytes())
	}
	g := reactor(forever, unreachable)
	g.table = join(0x70, 1, 0, 5)
	f.Add(g.bytes())
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	r := newRuntime(f, sandbox.Config{Limits: sandbox.Limits{Timeout: 50 * time.Millisecond, Memory: 1 << 20}})
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := r.Compile(t.Context(), wasm, sandbox.ModuleConfig{})
		if err != nil {
			if strings.Contains(err.Error(), "panic") {
				t.Error(err)
			}
			return
		}
		for _, tool := range m.Tools() {
			_, err := m.Call(t.Context(), tool.Name, nil, sandbox.CallConfig{})
			if err != nil && strings.Contains(err.Error(), "panic in the engine") {
				t.Error(err)
			}
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
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
