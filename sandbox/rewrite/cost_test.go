package rewrite_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/sandbox/rewrite"
)

// A shape is a module of one kind of cost: a function 0 with a body, and what it
// needs.
type shape struct {
	types     [][2]int // how many i32 each takes and leaves, behind one of none
	locals    int      // i32 of the function; two v128 follow, or more
	vectors   int
	body      []byte
	more      []function
	globals   int
	constants int // globals that cannot change
	imports   int // of sched_yield, which come first
}

type function struct {
	typ  int
	body []byte
}

const (
	tI32  = 0x7f
	tV128 = 0x7b
	tNone = 0x40
)

// wasm returns the module. Functions with an index from imports on are its own.
func (s shape) wasm() []byte {
	types := [][]byte{{0x60, 0, 0}, {0x60, 0, 1, tI32}}
	for _, t := range s.types {
		b := append(u([]byte{0x60}, t[0]), bytes.Repeat([]byte{tI32}, t[0])...)
		types = append(types, append(u(b, t[1]), bytes.Repeat([]byte{tI32}, t[1])...))
	}
	var functions, globals, imports [][]byte
	bodies := [][]byte{sized(slices.Concat(u([]byte{2}, s.locals), []byte{tI32, byte(max(s.vectors, 2)), tV128}, s.body, []byte{0x0b}))}
	functions = append(functions, []byte{0})
	for _, f := range s.more {
		functions = append(functions, u(nil, f.typ))
		bodies = append(bodies, sized(slices.Concat([]byte{0}, f.body, []byte{0x0b})))
	}
	for range s.globals {
		globals = append(globals, []byte{tI32, 1, 0x41, 0, 0x0b})
	}
	for range s.constants {
		globals = append(globals, []byte{tI32, 0, 0x41, 0, 0x0b})
	}
	for range s.imports {
		imports = append(imports, slices.Concat(sized([]byte("wasi_snapshot_preview1")), sized([]byte("sched_yield")), []byte{0, 1}))
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), vector8(1, types), vector8(2, imports), vector8(3, functions), vector8(4, [][]byte{{0x70, 0, 1}}),
		vector8(5, [][]byte{{0, 1}}), vector8(6, globals), vector8(7, [][]byte{append([]byte("\x01f\x00"), u(nil, s.imports)...)}), vector8(10, bodies))
}

func u(b []byte, n int) []byte      { return binary.AppendUvarint(b, uint64(n)) }
func sized(b []byte) []byte         { return append(u(nil, len(b)), b...) }
func op(o byte, n int) []byte       { return u([]byte{o}, n) }
func get(i int) []byte              { return op(0x20, i) }
func set(i int) []byte              { return op(0x21, i) }
func brIf(l int) []byte             { return op(0x0d, l) }
func times(n int, b ...byte) []byte { return bytes.Repeat(b, n) }
func join(parts ...[]byte) []byte   { return slices.Concat(parts...) }

// vector8 writes a section of items.
func vector8(id byte, items [][]byte) []byte {
	return append([]byte{id}, sized(append(u(nil, len(items)), slices.Concat(items...)...))...)
}

// each joins what f makes for all numbers below n.
func each(n int, f func(i int) []byte) (b []byte) {
	for i := range n {
		b = append(b, f(i)...)
	}
	return b
}

func gets(n int) []byte { return each(n, get) }

// fetch gives so many local variables values that nobody knows, and keep uses them.
func fetch(n int) []byte {
	return each(n, func(i int) []byte { return join([]byte{0x41, 0, 0x28, 2}, u(nil, 4*i), set(i)) })
}

func keep(n int) []byte {
	return each(n, func(i int) []byte { return join([]byte{0x41, 0}, get(i), []byte{0x36, 2, 0}) })
}

// vectors computes so often with the v128 behind so many locals.
func vectors(n, locals int, operands int, code ...byte) []byte {
	one := join(times(operands, get(locals)...), code, set(locals))
	return join(times(n, one...), []byte{0x41, 0}, get(locals), []byte{0xfd, 11, 4, 0})
}

// shapes are what a small module can ask of a compiler: n times something of m
// values.
func shapes(n, m int) map[string]func() shape {
	swap := [][2]int{{m, m}} // type 2
	same := []function{{2, gets(m)}}
	loopBack := join(get(0), brIf(0), []byte{0x0b})
	drops, set1, chain := times(m, 0x1a), join([]byte{0x41, 1}, set(1)), times(n, join(get(0), brIf(0))...)
	return map[string]func() shape{
		"instructions": func() shape {
			return shape{locals: 2, body: join(times(n*m, join(get(0), []byte{0x41, 3, 0x6a}, set(0))...), keep(1))}
		},
		"loads": func() shape {
			return shape{locals: 60, body: join(each(n*m/4, func(i int) []byte { return join(get(i%60), []byte{0x28, 2, 4}, set((i*13+1)%60)) }), keep(60))}
		},
		"divisions": func() shape {
			return shape{locals: 2, body: join(times(n*m/4, join(get(0), get(1), []byte{0x6d}, set(0))...), keep(1))}
		},
		"truncations": func() shape {
			return shape{locals: 2, body: join(times(n*m/4, join(get(0), []byte{0xb2, 0xa8}, set(0))...), keep(1))}
		},
		"vectors, popcnt":      func() shape { return shape{locals: 1, body: vectors(n*m/8, 1, 1, 0xfd, 98)} },
		"vectors, truncations": func() shape { return shape{locals: 1, body: vectors(n*m/8, 1, 1, 0xfd, 0xf9, 1)} },
		"vectors, products":    func() shape { return shape{locals: 1, body: vectors(n*m/8, 1, 2, 0xfd, 0xdc, 1)} },
		"bulk":                 func() shape { return shape{locals: 1, body: times(n*m/64, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0)} },
		"calls": func() shape {
			return shape{types: swap, locals: m, more: same, body: join(gets(m), times(n, 0x10, 1), drops)}
		},
		"results": func() shape {
			return shape{types: [][2]int{{0, m}}, more: []function{{2, times(m, 0x41, 1)}}, body: append(times(n, 0x10, 1), 0x00)}
		},
		"indirect calls": func() shape {
			return shape{types: swap, locals: m, body: join(gets(m), times(n, 0x41, 0, 0x11, 2, 0), drops)}
		},
		"returns": func() shape {
			return shape{types: swap, more: []function{{2, join(gets(m), times(n, join(get(0), []byte{4, 2, 0x0f, 0x0b})...))}}}
		},
		"blocks": func() shape {
			return shape{types: swap, locals: m, more: same, body: join(gets(m), times(n, join([]byte{2, 2}, get(0), brIf(0), []byte{0x10, 1, 0x0b})...), drops)}
		},
		"loops of values": func() shape {
			return shape{types: swap, locals: m, more: same, body: join(gets(m), times(n, join([]byte{3, 2, 0x10, 1}, loopBack)...), drops)}
		},
		"ifs of values": func() shape {
			return shape{types: swap, locals: m, more: same, body: join(gets(m), times(n, join(get(0), []byte{4, 2, 0x10, 1, 0x0b})...), drops)}
		},
		"branches": func() shape {
			return shape{types: swap, locals: m, more: same, body: join(gets(m), []byte{2, 2}, times(n, join(get(0), brIf(0), []byte{0x10, 1})...), []byte{0x0b}, drops)}
		},
		"jump tables": func() shape {
			return shape{types: [][2]int{{0, m}}, locals: m, body: join(fetch(m), []byte{2, 2, 2, 2}, gets(m), get(0), u([]byte{0x0e}, n), times(n/2, 0, 1), []byte{0, 0x0b}, drops, gets(m), []byte{0x0b}, drops)}
		},
		"ways": func() shape {
			return shape{locals: 1, body: join(times(m, 2, tNone), times(n*m/64, join(get(0), brIf(m-1))...), times(m, 0x0b))}
		},
		"lookups": func() shape {
			return shape{locals: m, body: join(fetch(m), times(n, join(get(0), []byte{4, tNone, 1, 0x0b})...), keep(m))}
		},
		"loops over locals": func() shape {
			return shape{locals: m, body: join(fetch(m), times(n, join([]byte{3, tNone}, loopBack)...), keep(m))}
		},
		"nested loops": func() shape {
			return shape{locals: m, body: join(fetch(m), times(n/4, 3, tNone), each(m, func(i int) []byte { return join(get(i), []byte{0x41, 1, 0x6a}, set(i)) }), times(n/4, loopBack...), keep(m))}
		},
		"ifs that write locals": func() shape {
			return shape{locals: m, body: join(fetch(m), times(n/16, join(get(0), []byte{4, tNone}, each(m, func(i int) []byte { return join([]byte{0x41, 1}, set(i)) }), []byte{0x0b}, keep(m))...))}
		},
		"values on the stack": func() shape {
			return shape{locals: 1, body: join(each(m, func(i int) []byte { return join([]byte{0x41, 0, 0x28, 2}, u(nil, 4*i)) }), times(n, join(get(0), []byte{4, tNone, 0x0b})...), drops)}
		},
		"addresses": func() shape {
			return shape{locals: m, body: join(each(m, func(i int) []byte { return join(get(i), []byte{0x28, 2, 0, 0x1a}) }), times(n, join(get(0), brIf(0))...))}
		},
		"globals":   func() shape { return shape{globals: m, more: []function{{0, nil}}, body: times(n, 0x10, 1)} },
		"functions": func() shape { return shape{more: slices.Repeat([]function{{0, nil}}, n*m/16)} },
		"ifs with another half": func() shape {
			return shape{types: [][2]int{{0, m}}, more: []function{{2, times(m, 0x41, 1)}}, body: times(n, join([]byte{0x41, 1, 4, 2, 0x10, 1, 5, 0x10, 1, 0x0b}, drops)...)}
		},
		"back edges": func() shape { // of which each has to load again what the call has saved
			load := each(15, func(i int) []byte { return join([]byte{0x41, 0, 0xfd, 0, 4, 0}, set(13+i)) })
			store := each(15, func(i int) []byte { return join([]byte{0x41, 0}, get(13+i), []byte{0xfd, 11, 4, 0}) })
			return shape{locals: 13, vectors: 15, more: []function{{0, nil}}, body: join(fetch(13), load, []byte{3, tNone, 0x10, 1}, times(n*m/4, join(get(0), brIf(0))...), []byte{0x0b}, keep(13), store)}
		},
		"branches of values": func() shape {
			return shape{types: swap, locals: m, body: join(gets(m), []byte{2, 2}, times(n, join(get(0), brIf(0))...), []byte{0x0b}, drops)}
		},
		"tables": func() shape {
			return shape{locals: 1, body: join(times(n, 0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0), times(n, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 0))}
		},
		"tables that grow": func() shape { return shape{body: times(n*m/16, 0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a)} },
		"results on the stack": func() shape {
			return shape{locals: 1, more: []function{{1, []byte{0x41, 1}}}, body: join(times(m, 0x10, 1), times(n, join(get(0), []byte{4, tNone, 0x0b})...), drops)}
		},
		"live globals": func() shape {
			read := each(m, func(i int) []byte { return append(op(0x23, i), 0x1a) })
			return shape{globals: m, locals: 1, body: join(read, times(n, join(get(0), brIf(0))...), read)}
		},
		"functions and globals": func() shape { return shape{constants: m, more: slices.Repeat([]function{{0, nil}}, n)} },
		"functions and imports": func() shape { return shape{imports: m, more: slices.Repeat([]function{{0, nil}}, n)} },
		"long chains, locals":   func() shape { return shape{locals: 2, body: join(set1, chain, times(m, 0x20, 1, 0x1a))} },
		"long chains, globals": func() shape {
			return shape{globals: 1, locals: 1, body: join(times(2, 0x23, 0, 0x1a), chain, times(m, 0x23, 0, 0x1a))}
		},
		"long chains, memory": func() shape {
			return shape{locals: 1, body: join([]byte{0x3f, 0, 0x1a}, chain, times(m, 0x3f, 0, 0x1a))}
		},
		"types": func() shape { return shape{types: slices.Repeat(swap, n)} },
	}
}

// TestCostIsFromAbove compiles shapes, and compares the machine code that the
// engine put into its cache with the estimate.
func TestCostIsFromAbove(t *testing.T) {
	for name, shape := range shapes(64, 64) {
		t.Run(name, func(t *testing.T) {
			s := shape()
			m, err := rewrite.Decode(s.wasm())
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Meter()
			if err != nil {
				t.Fatal(err)
			}
			code := machineCode(t, out)
			t.Logf("%d bytes of WASM, %d of machine code, estimated %+v", len(s.wasm()), code, m.Cost())
			if cost := m.Cost(); cost.Code < code {
				t.Errorf("machine code of %d bytes was estimated at %d", code, cost.Code)
			}
		})
	}
}

// TestCostOfMemory checks what is not spent for one function, against what was
// measured: the machine code is there four times, and of each function 800 bytes stay.
func TestCostOfMemory(t *testing.T) {
	const n, m = 64, 64
	decoded, err := rewrite.Decode(shapes(n, m)["functions"]().wasm())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decoded.Meter(); err != nil {
		t.Fatal(err)
	}
	if cost := decoded.Cost(); cost.Memory < 4*cost.Code+n*m/16*800 {
		t.Errorf("%+v, want memory for all of the code and of %d functions", cost, n*m/16)
	}
}

// TestCostOfReturns checks that a return of values costs as much as it takes to
// store them.
func TestCostOfReturns(t *testing.T) {
	const values = 1000
	cost := func(more ...byte) int64 {
		decoded, err := rewrite.Decode(shape{types: [][2]int{{0, values}}, more: []function{{2, append(times(values, 0x41, 1), more...)}}}.wasm())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decoded.Meter(); err != nil {
			t.Fatal(err)
		}
		return decoded.Cost().Code
	}
	if without, with := cost(), cost(0x0f); with < without+8*values {
		t.Errorf("%d bytes of machine code, and with a return of %d values %d", without, values, with)
	}
}

// machineCode compiles a module and returns how much machine code there is.
func machineCode(t *testing.T, wasm []byte) int64 {
	dir := t.TempDir()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close(t.Context())
	engine := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache).WithCoreFeatures(features))
	defer engine.Close(t.Context())
	if _, err := engine.CompileModule(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has %v, %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestBombs checks that shapes are refused before the compiler sees them when
// they are large, for what they spend on.
func TestBombs(t *testing.T) {
	for name, bomb := range map[string]struct {
		n, m int
		want string
	}{
		"calls":                 {1000, 1000, "calls and returns"},
		"results":               {1000, 1000, "calls and returns"},
		"indirect calls":        {1000, 1000, "calls and returns"},
		"returns":               {1000, 1000, "blocks and branches"},
		"blocks":                {1000, 1000, "blocks and branches"},
		"loops of values":       {1000, 1000, "blocks and branches"},
		"ifs of values":         {1000, 1000, "blocks and branches"},
		"branches":              {1000, 1000, "calls and returns"},
		"jump tables":           {4000, 1000, "blocks and branches"},
		"ways":                  {4000, 1000, "blocks and branches"},
		"lookups":               {2000, 3000, "local variables"},
		"loops over locals":     {1000, 3000, "local variables"},
		"nested loops":          {400, 1000, "local variables"},
		"values on the stack":   {4000, 4000, "values and addresses"},
		"addresses":             {8000, 8000, "values and addresses"},
		"globals":               {4000, 1000, "globals"},
		"branches of values":    {100, 1000, "blocks and branches"},
		"results on the stack":  {5000, 5000, "values and addresses"},
		"live globals":          {8000, 8000, "globals"},
		"functions and globals": {60_000, 60_000, "globals"},
		"functions and imports": {60_000, 60_000, "calls"},
		"long chains, locals":   {16_000, 200_000, "local variables"},
		"long chains, globals":  {16_000, 200_000, "globals"},
		"long chains, memory":   {16_000, 200_000, "values and addresses"},
		"types":                 {4000, 1000, "types"},
	} {
		t.Run(name, func(t *testing.T) {
			wasm := shapes(bomb.n, bomb.m)[name]().wasm()
			_, err := meter(wasm)
			var costly *rewrite.CostError
			if !errors.As(err, &costly) || !strings.Contains(err.Error(), bomb.want) {
				t.Errorf("%d bytes: err = %v, want one with %q", len(wasm), err, bomb.want)
			}
			t.Logf("%d bytes: %v", len(wasm), err)
		})
	}
}
