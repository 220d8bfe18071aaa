package rewrite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/internal/testing/bombs"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// TestMeterRefuses checks that what could be decoded otherwise by the compiler,
// or would reach what the rewriting adds, is refused by name.
func TestMeterRefuses(t *testing.T) {
	sections := func(parts ...[]byte) []byte {
		return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), slices.Concat(parts...))
	}
	void := section(1, 0x60, 0, 0)
	tests := map[string]struct {
		wasm []byte
		want string // "" for none
	}{
		"nothing of it":                      {module(), ""},
		"the meter itself, imported":         {sections(void, section(2, slices.Concat([]byte{14}, []byte("wasmgate:meter"), []byte{4}, []byte("fuel"), []byte{0, 0})...)), "reserved for the sandbox"},
		"the meter's global":                 {module(0x23, 0, 0x1a), "malformed"},
		"the meter's global, written":        {module(0x42, 0, 0x24, 0), "malformed"},
		"the meter's global, exported":       {sections(section(7, 1, 'g', 3, 0)), "malformed"},
		"the meter's local":                  {module(0x20, 3, 0x1a), "malformed"},
		"the meter's type":                   {module(0x42, 0, 0x02, 1, 0x0b, 0x1a), "malformed"},
		"a function that is only added":      {module(0x10, 1), "malformed"},
		"a start that is only added":         {sections([]byte{8, 1, 0}), "malformed"},
		"exceptions":                         {module(0x08, 0), "exceptions"},
		"exceptions caught":                  {module(0x1f, 0x40, 0, 0x0b), "exceptions"},
		"tags of exceptions":                 {sections([]byte{13, 1, 0}), "exceptions"},
		"an imported tag":                    {sections(void, section(2, 1, 'm', 1, 'n', 4, 0, 0)), "exceptions"},
		"atomic instructions":                {module(0xfe, 0x03, 0), "threads"},
		"shared memory":                      {sections(section(5, 3, 1, 2)), "threads"},
		"64-bit memory":                      {sections(section(5, 4, 1)), "64-bit memory"},
		"two memories":                       {sections([]byte{5, 5, 2, 0, 1, 0, 1}), "several memories"},
		"another memory in a load":           {module(0x41, 0, 0x28, 0x42, 1, 0, 0x1a), "several memories"},
		"another memory's size":              {module(0x3f, 1, 0x1a), "several memories"},
		"garbage collection":                 {module(0xfb, 0), "garbage collection"},
		"a type of a struct":                 {sections(section(1, 0x5f, 0)), "garbage collection"},
		"calls of references":                {module(0x14, 0), "typed function references"},
		"a type of references":               {sections(section(1, 0x60, 1, 0x64, 0)), "value types other than"},
		"relaxed vector instructions":        {module(0xfd, 0x80, 2), "relaxed vector instructions"},
		"a number that could be a nop":       {module(0xfd, 0x8c, 0), "relaxed vector instructions"},
		"an opcode that nobody knows":        {module(0xff), "unknown instruction"},
		"a negative type of a block":         {module(0x02, 0xff, 0x7f, 0x0b), "malformed"},
		"a table with an initial value":      {sections(section(4, 0x40, 0, 0x70, 0, 1, 0xd0, 0x70, 0x0b)), "an unsupported kind"},
		"two sections of one kind":           {sections(void, void), "malformed"},
		"sections in another order":          {sections(section(7, 1, 'f', 0, 0), void), "malformed"},
		"bytes behind the end of a function": {module(0x0b, 0x01), "malformed"},
		"a function without an end":          {module(0x02, 0x40), "malformed"},
		"bytes behind the end of a section":  {sections([]byte{1, 5, 1, 0x60, 0, 0, 0}), "malformed"},
		"functions without code":             {sections(void, section(3, 0)), "malformed"},
		"a block of too few values":          {module(0x02, 0x7f, 0x0b, 0x1a), "invalid function"},
		"code without functions":             {sections(section(10, 2, 0, 0x0b)), "malformed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := meter(tt.wasm)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%x: err = %v, want one with %q", out, err, tt.want)
			}
		})
	}
}

// TestLabelsThatAreNotThere checks that a jump table which claims four billion labels takes
// no time: modules are read in the gateway's own process.
func TestLabelsThatAreNotThere(t *testing.T) {
	for _, code := range [][]byte{{0x0c, 1}, {0x10, 1, 0x41, 0, 0x0d, 1}, {0x0c, 0, 0x10, 1, 0x41, 0, 0x0e, 1, 1, 0}} { // the second would reach the block around the body
		_, err := meter(bombs.Shape{More: []bombs.Function{{Type: 0}}, Body: code}.WASM())
		if err == nil || !strings.Contains(err.Error(), "branch target out of range") {
			t.Errorf("%x: %v", code, err)
		}
	}
	if out, err := meter(module(0x41, 0, 0x0e, 0xff, 0xff, 0xff, 0xff, 0x0e, 0)); err == nil {
		t.Errorf("%x", out)
	}
}

// TestMeterAgain checks that a module can be written twice, and that one that
// is metered cannot be metered again.
func TestMeterAgain(t *testing.T) {
	m, err := rewrite.Decode(module(0x01))
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.Meter()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := m.Meter(); err != nil || !slices.Equal(first, second) {
		t.Errorf("the second time: %x, %v, want %x", second, err, first)
	}
	if _, err := meter(first); err == nil {
		t.Error("a metered module was metered again")
	}
}

// TestCustomSections checks that no custom section comes through: the engine
// allocates by the counts in one of names before it looks whether they are there.
func TestCustomSections(t *testing.T) {
	names := join([]byte{0}, sized(join(sized([]byte("name")), []byte{1}, sized([]byte{0xff, 0xff, 0xff, 0xff, 7})))) // two billion
	plain := module(0x01)
	with, err := meter(slices.Concat(plain[:8], names, plain[8:], names))
	if err != nil {
		t.Fatal(err)
	}
	if without, err := meter(plain); err != nil || !slices.Equal(with, without) {
		t.Errorf("%x, %v, want %x", with, err, without)
	}
}

// withoutCustom leaves out the custom sections of a module that was decoded, as
// the rewriting does. The engine allocates by the counts in a section of names
// before it looks whether they are there.
func withoutCustom(wasm []byte) []byte {
	out := slices.Clone(wasm[:8])
	for rest := wasm[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		end := 1 + n + int(size)
		if rest[0] != 0 {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}

// FuzzMeter checks that what is accepted, and is valid, stays valid; and that
// what is invalid does not become valid.
func FuzzMeter(f *testing.F) {
	unraced.Long(f)
	f.Cleanup(rewrite.AccessesAtOnce(2)) // so that many come to the meter in straight code
	f.Add(module(0x20, 0, 0x03, 0x40, 0x0c, 0, 0x0b))
	f.Add(module(0x41, 0, 0x41, 0, 0x41, 9, 0xfc, 11, 0, 0x10, 0))
	f.Add(module(0xfd, 0x0c, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0xfd, 0xff, 1, 0x1a))
	f.Add(waits("_start"))
	if root, err := suite(f); err == nil {
		for _, name := range []string{"elem", "bulk", "br_table", "loop", "ref_func", "table_init", "simd_load", "imports", "global", "select"} {
			files, _ := filepath.Glob(filepath.Join(root, "v2", "testdata", name+".*.wasm"))
			for _, file := range files {
				if wasm, err := os.ReadFile(file); err == nil && len(wasm) < 1<<10 {
					f.Add(wasm)
				}
			}
		}
	}
	engine := wazero.NewRuntimeWithConfig(f.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	valid := func(t *testing.T, wasm []byte) error {
		compiled, err := engine.CompileModule(t.Context(), wasm)
		if err == nil {
			compiled.Close(t.Context())
		}
		return err
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		out, err := meter(wasm)
		if err != nil {
			return
		}
		errPlain, errMetered := valid(t, withoutCustom(wasm)), valid(t, out)
		if (errPlain == nil) != (errMetered == nil) {
			t.Errorf("plain %v, metered %v", errPlain, errMetered)
		}
		s, err := seal(wasm)
		if err != nil {
			return // unfit, or its data lie outside of its memory, which is no fault of validity
		}
		if errSealed := valid(t, s.WASM); (errPlain == nil) != (errSealed == nil) {
			t.Errorf("plain %v, sealed %v", errPlain, errSealed)
		}
	})
}

// TestFuelOfLoopsThatAreLeft checks that a loop which calls nothing has its fuel in the
// global once it is left, whichever way: what is spent is the same if the meter is asked
// at each charge, so that nothing waits in a local.
func TestFuelOfLoopsThatAreLeft(t *testing.T) {
	// Local 0 counts down from 100: what the loops do until it is 0.
	begin := []byte{0x41, 100 | 0x80, 0, 0x21, 0}
	count := []byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0}
	for name, body := range map[string][]byte{
		"its end":              join([]byte{3, tNone}, count, []byte{0x0d, 0, 0x0b}),
		"a branch":             join([]byte{2, tNone, 3, tNone}, count, []byte{4, tNone, 0x0c, 1, 0x0b, 0x0c, 1, 0x0b, 0x0b}),
		"a branch if":          join([]byte{2, tNone, 3, tNone}, count, []byte{0x45, 0x0d, 1, 0x0c, 0, 0x0b, 0x0b}),
		"a branch of a value":  join([]byte{2, tI32, 3, tNone}, []byte{0x41, 7}, count, []byte{0x45, 0x0d, 1, 0x1a, 0x0c, 0, 0x0b, 0, 0x0b, 0x1a}),
		"a jump table":         join([]byte{2, tNone, 3, tNone}, count, []byte{0x0e, 1, 1, 0, 0x0b, 0x0b}),
		"a return":             join([]byte{3, tNone}, count, []byte{0x45, 4, tNone, 0x0f, 0x0b, 0x0c, 0, 0x0b}),
		"a loop within it":     join([]byte{3, tNone, 3, tNone}, count, []byte{0x0d, 0, 0x0b, 0x20, 0, 0x0d, 0, 0x0b}),
		"out of both":          join([]byte{2, tNone, 3, tNone, 3, tNone}, count, []byte{0x45, 0x0d, 2, 0x0c, 1, 0x0b, 0x0b, 0x0b}),
		"a loop behind it":     join([]byte{3, tNone}, count, []byte{0x0d, 0, 0x0b, 3, tNone}, count, []byte{0x41, 0x9c, 0x7f, 0x4a, 0x0d, 0, 0x0b}),
		"one that calls":       join([]byte{3, tNone, 3, tNone}, count, []byte{0x0d, 0, 0x0b, 0x10, 1, 0x20, 0, 0x0d, 0, 0x0b}),
		"to one that calls":    join([]byte{3, tNone, 0x10, 1, 3, tNone}, count, []byte{0x41, 3, 0x71, 0x0d, 1, 0x20, 0, 0x0d, 0, 0x0b, 0x0b}),
		"a table that changes": join([]byte{3, tNone}, []byte{0x41, 0, 0xd0, 0x70, 0x41, 1, 0xfc, 17, 0}, count, []byte{0x0d, 0, 0x0b}),
	} {
		t.Run(name, func(t *testing.T) {
			out, err := meter(bombs.Shape{Locals: 1, More: []bombs.Function{{Type: 0}}, Body: join(begin, body)}.WASM())
			if err != nil {
				t.Fatal(err)
			}
			spent := func(slice int64) int64 {
				engine := wazero.NewRuntime(t.Context())
				defer engine.Close(t.Context())
				granted := provide(t, engine, slice)
				m, err := engine.Instantiate(t.Context(), out)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if _, err := m.ExportedFunction("f").Call(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				return *granted - int64(m.ExportedGlobal(rewrite.MeterGlobal).Get())
			}
			if each, once := spent(0), spent(1<<40); each != once || each < 2*100*5 {
				t.Errorf("%d instructions charged one by one, %d in one slice", each, once)
			}
		})
	}
}

// waits is a command that reads, directly and by a table, and keeps the results in its global,
// which it exports under a name.
func waits(export string) []byte {
	i := func(n byte) []byte { return []byte{0x41, n} }
	four := join(i(1), i(2), i(3), i(4))
	body := join([]byte{0}, four, []byte{0x10, 0}, four, i(0), []byte{0x11, 0, 0}, i(10), []byte{0x6c, 0x6a, 0x24, 0, 0x0b})
	return join([]byte("\x00asm\x01\x00\x00\x00"),
		vector8(1, [][]byte{{0x60, 4, tI32, tI32, tI32, tI32, 1, tI32}, {0x60, 1, tI32, 0}, {0x60, 0, 0}}),
		vector8(2, [][]byte{join(sized([]byte("w")), sized([]byte("read")), []byte{0, 0}), join(sized([]byte("w")), sized([]byte("exit")), []byte{0, 1})}),
		section(3, 2), section(4, 0x70, 0, 1), section(6, tI32, 1, 0x41, 0, 0x0b),
		vector8(7, [][]byte{join(sized([]byte(export)), []byte{0, 2}), join(sized([]byte("g")), []byte{3, 0})}),
		section(9, 0, 0x41, 0, 0x0b, 1, 0), vector8(10, [][]byte{sized(body)}))
}

// TestRewind: what reads is called again, with what it was called with and at the price of one
// call, as long as the host wants it; and RunFunction exits as what it runs returns.
func TestRewind(t *testing.T) {
	decoded, err := rewrite.Decode(waits("_start"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) func(rewrite.Import) bool {
		return func(in rewrite.Import) bool { return in.Name == name }
	}
	for name, tt := range map[string]struct {
		reads, exits string
		run          bool
	}{
		"both": {"read", "exit", true}, "no exit": {"read", "quit", false}, "no read": {"write", "exit", false},
		"of other types": {"exit", "read", false},
	} {
		t.Run(name, func(t *testing.T) {
			decoded.Rewind(of(tt.reads), of(tt.exits))
			out, err := decoded.Meter()
			if err != nil {
				t.Fatal(err)
			}
			if code := machineCode(t, out); code > decoded.Cost().Code {
				t.Errorf("machine code of %d bytes was estimated at %d", code, decoded.Cost().Code)
			}
			spent := map[uint32]int64{}
			for again := range uint32(3) {
				engine := wazero.NewRuntime(t.Context())
				defer engine.Close(t.Context())
				granted, reads, exits := provide(t, engine, 1<<20), uint32(0), []uint32(nil)
				w := engine.NewHostModuleBuilder("w")
				w.NewFunctionBuilder().WithFunc(func(a, b, c, d uint32) uint32 {
					if a != 1 || b != 2 || c != 3 || d != 4 {
						t.Errorf("it is called with %d, %d, %d, %d", a, b, c, d)
					}
					if reads++; tt.reads == "read" && (reads-1)%(again+1) < again {
						return rewrite.Again
					}
					return 5
				}).Export("read")
				w.NewFunctionBuilder().WithFunc(func(code uint32) { exits = append(exits, code) }).Export("exit")
				if _, err := w.Instantiate(t.Context()); err != nil {
					t.Fatal(err)
				}
				m, err := engine.InstantiateWithConfig(t.Context(), out, wazero.NewModuleConfig().WithStartFunctions())
				if err != nil {
					t.Fatal(err)
				}
				f := m.ExportedFunction(rewrite.RunFunction)
				if (f != nil) != tt.run {
					t.Fatalf("RunFunction: %v, want %v", f != nil, tt.run)
				}
				if f == nil {
					f = m.ExportedFunction("_start")
				}
				if _, err := f.Call(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := m.ExportedGlobal("g").Get(); got != 55 || tt.run && !slices.Equal(exits, []uint32{0}) || !tt.run && exits != nil {
					t.Errorf("it ends with %d and exits with %v", got, exits)
				}
				if want := 2 * (again + 1); tt.reads == "read" && reads != want {
					t.Errorf("it read %d times, not %d", reads, want)
				}
				if spent[again] = *granted - int64(m.ExportedGlobal(rewrite.MeterGlobal).Get()); spent[again] != spent[0] {
					t.Errorf("it spent %d, and %d if it reads once", spent[again], spent[0])
				}
			}
		})
	}
	decoded, err = rewrite.Decode(waits("main"))
	if err != nil {
		t.Fatal(err)
	}
	rewind(decoded)
	if out, err := decoded.Meter(); err != nil || strings.Contains(string(out), rewrite.RunFunction) {
		t.Errorf("what is not a command is run as one: %v", err)
	}
}

// TestStraightCode checks that code without a loop or a call comes to its meter before it
// has loaded or stored too often, whatever it branches over.
func TestStraightCode(t *testing.T) {
	const most, n = 64, 60
	defer rewrite.AccessesAtOnce(most)()
	at := 0
	stores := func(n int) (b []byte) { // each of a byte of its own
		for range n {
			b = join(b, []byte{0x41, byte(at & 0x3f), 0x41, 1, 0x3a, 0}, binary.AppendUvarint(nil, uint64(at&^0x3f)))
			at++
		}
		return b
	}
	times := func(of func() []byte) (b []byte) {
		for range 20 {
			b = join(b, of())
		}
		return b
	}
	branch, skipped := []byte{0x20, 0, 0x0d, 0}, []byte{0x0b}
	for name, of := range map[string]func() []byte{
		"in a row":      func() []byte { return stores(n) },
		"over the look": func() []byte { return join([]byte{2, tNone}, stores(n), branch, stores(n), skipped) },
		"over two blocks": func() []byte {
			return join([]byte{2, tNone, 2, tNone}, stores(n), []byte{0x20, 0, 0x0d, 1}, stores(n), []byte{0x0b}, skipped)
		},
		"a half without a look": func() []byte { return join([]byte{0x20, 0, 4, tNone}, stores(n/2), []byte{5}, stores(2*n), skipped) },
		"the other half":        func() []byte { return join([]byte{0x20, 0, 4, tNone}, stores(2*n), []byte{5}, stores(n/2), skipped) },
		"before both halves": func() []byte {
			return join(stores(n), []byte{0x20, 0, 4, tNone}, stores(2*n), []byte{5}, stores(n), skipped)
		},
		"no other half": func() []byte { return join(stores(n), []byte{0x20, 0, 4, tNone}, stores(2*n), skipped) },
		"a jump table": func() []byte {
			return join([]byte{2, tNone, 2, tNone}, stores(n), []byte{0x20, 0, 0x0e, 1, 0, 1, 0x0b}, stores(n), skipped)
		},
		"behind what is dead": func() []byte { return join([]byte{2, tNone}, stores(n), []byte{0x0c, 0}, stores(n), skipped) },
		"around a loop":       func() []byte { return join(stores(n), []byte{3, tNone, 0x0b}, stores(n)) },
		"out of a loop": func() []byte {
			return join(stores(n), []byte{2, tNone, 3, tNone, 0x20, 0, 0x0d, 1, 0x0b, 0x0b}, stores(n))
		},
		"out of two by a table": func() []byte {
			return join(stores(n), []byte{2, tNone, 3, tNone, 3, tNone, 0x20, 0, 0x0e, 1, 2, 2, 0x0b, 0x0b}, stores(2*n), []byte{0x0b}, stores(n))
		},
		"in a loop": func() []byte { return join([]byte{3, tNone}, stores(3*n), skipped) },
	} {
		for _, branches := range []byte{0, 1} {
			t.Run(fmt.Sprint(name, ", ", branches), func(t *testing.T) {
				at = 0
				out, err := meter(bombs.Shape{Locals: 1, Body: join([]byte{0x41, branches, 0x21, 0}, times(of))}.WASM())
				if err != nil {
					t.Fatal(err)
				}
				engine := wazero.NewRuntime(t.Context())
				defer engine.Close(t.Context())
				written, atOnce := 0, 0
				look := func(m api.Module) {
					memory, _ := m.Memory().Read(0, uint32(at))
					now := bytes.Count(memory, []byte{1})
					written, atOnce = now, max(atOnce, now-written)
				}
				fuel := func(_ context.Context, m api.Module, left int64) int64 {
					look(m)
					return max(left, 1<<40) // no charge has the guest come here again
				}
				if _, err := engine.NewHostModuleBuilder(rewrite.MeterModule).NewFunctionBuilder().WithFunc(fuel).Export(rewrite.MeterFunction).Instantiate(t.Context()); err != nil {
					t.Fatal(err)
				}
				m, err := engine.Instantiate(t.Context(), out)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := m.ExportedFunction("f").Call(t.Context()); err != nil {
					t.Fatal(err)
				}
				bound := most
				if name == "in a loop" { // each time it begins it pays
					bound = 2 * most
				}
				if look(m); atOnce > bound || written < 300 {
					t.Errorf("%d bytes were written, %d at once", written, atOnce)
				}
			})
		}
	}
}

// TestUnwinding checks that a function which has called itself comes to the meter while it
// returns, whichever way: what it does then it has paid for long ago.
func TestUnwinding(t *testing.T) {
	const depth, slice = 1000, 10_000
	work := bytes.Repeat([]byte{0x01}, 500) // nops
	// Function 1 takes n and leaves it; it calls itself with n-1, if that is not 0, and works.
	call := []byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 4, tNone, 0x20, 0, 0x10, 1, 0x1a, 0x0b}
	leaves, one := []byte{0x20, 0}, []byte{0x41, 1}
	for name, body := range map[string][]byte{
		"its end":                     join(call, work, leaves),
		"a return":                    join(call, work, leaves, []byte{0x0f}),
		"a return out of a block":     join(call, work, []byte{2, tNone}, leaves, []byte{0x0f, 0x0b, 0}),
		"a branch":                    join(call, work, leaves, []byte{0x0c, 0}),
		"a branch if":                 join(call, work, leaves, one, []byte{0x0d, 0, 0}),
		"a jump table":                join(call, work, leaves, one, []byte{0x0e, 1, 0, 0}),
		"a return out of a loop":      join(call, work, []byte{3, tNone}, leaves, []byte{0x0f, 0x0b, 0}),
		"a branch out of a loop":      join(call, work, []byte{3, tNone}, leaves, []byte{0x0c, 1, 0x0b, 0}),
		"a branch if out of a loop":   join(call, work, []byte{3, tNone}, leaves, one, []byte{0x0d, 1, 0x1a, 0x0b, 0}),
		"a jump table out of a loop":  join(call, work, []byte{3, tNone}, leaves, one, []byte{0x0e, 1, 1, 1, 0x0b, 0}),
		"a loop that calls":           join([]byte{3, tNone}, call, work, leaves, one, []byte{0x0d, 1, 0x1a, 0x0b, 0}),
		"a call through a table":      join([]byte{0x41, 0, 0x11, 0, 0}, work, leaves),
		"what works before it called": join(work, call, leaves),
	} {
		t.Run(name, func(t *testing.T) {
			n := join([]byte{0x41}, binary.AppendUvarint(nil, depth))
			begin := join(n, []byte{0x10, 1, 0x1a})
			if name == "a call through a table" { // to this function, which counts in memory
				begin = join([]byte{0x41, 0, 0xd2, 0, 0x26, 0, 0x41, 0, 0x41, 0, 0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0, 0x41, 0, 0x28, 2, 0}, n, []byte{0x49, 4, tNone, 0x41, 0, 0x10, 1, 0x1a, 0x0b})
			}
			wasm := bombs.Shape{Locals: 1, Types: [][2]int{{1, 1}}, More: []bombs.Function{{Type: 2, Body: body}}, Body: begin}.WASM()
			out, err := meter(wasm)
			if err != nil {
				t.Fatal(err)
			}
			engine := wazero.NewRuntime(t.Context())
			defer engine.Close(t.Context())
			asked := 0
			fuel := func(_ context.Context, m api.Module, left int64) int64 {
				asked++
				m.ExportedGlobal(rewrite.BehindGlobal).(api.MutableGlobal).Set(slice)
				if left < 0 {
					left += 1 << 40 // no charge has the guest come here again
				}
				return left
			}
			if _, err := engine.NewHostModuleBuilder(rewrite.MeterModule).NewFunctionBuilder().WithFunc(fuel).Export(rewrite.MeterFunction).Instantiate(t.Context()); err != nil {
				t.Fatal(err)
			}
			m, err := engine.InstantiateWithConfig(t.Context(), out, wazero.NewModuleConfig().WithStartFunctions("f"))
			if err != nil {
				t.Fatal(err)
			}
			spent := 1<<40 - int64(m.ExportedGlobal(rewrite.MeterGlobal).Get())
			if least := depth * 500 / slice; asked < least || spent < depth*500 || spent > depth*600 {
				t.Errorf("asked %d times, want %d; %d instructions", asked, least, spent)
			}
		})
	}
}
