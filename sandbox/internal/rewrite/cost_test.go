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

	"github.com/wasmgate/wasmgate/internal/testing/bombs"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

const (
	tI32  = 0x7f
	tV128 = 0x7b
	tNone = 0x40
)

func u(b []byte, n int) []byte      { return binary.AppendUvarint(b, uint64(n)) }
func sized(b []byte) []byte         { return append(u(nil, len(b)), b...) }
func op(o byte, n int) []byte       { return u([]byte{o}, n) }
func get(i int) []byte              { return op(0x20, i) }
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

// TestCostIsFromAbove compiles shapes, and compares the machine code that the
// engine put into its cache with the estimate.
func TestCostIsFromAbove(t *testing.T) {
	unraced.Long(t)
	for name, shape := range bombs.Shapes(64, 64) {
		t.Run(name, func(t *testing.T) {
			s := shape()
			m, err := rewrite.Decode(s.WASM())
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Meter()
			if err != nil {
				t.Fatal(err)
			}
			code := machineCode(t, out)
			t.Logf("%d bytes of WASM, %d of machine code, estimated %+v", len(s.WASM()), code, m.Cost())
			if cost := m.Cost(); cost.Code < code {
				t.Errorf("machine code of %d bytes was estimated at %d", code, cost.Code)
			}
		})
	}
}

// TestCostOfGates checks that what the rewriting adds is estimated as well: a function for
// each that is imported, and for each instruction that moves memory.
func TestCostOfGates(t *testing.T) {
	for name, s := range map[string]bombs.Shape{
		"imports": {Imports: 500},
		"pieces":  {Body: []byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0}},
	} {
		m, err := rewrite.Decode(s.WASM())
		if err != nil {
			t.Fatal(err)
		}
		out, err := m.Meter()
		if err != nil {
			t.Fatal(err)
		}
		if code := machineCode(t, out); m.Cost().Code < code {
			t.Errorf("%s: machine code of %d bytes was estimated at %d", name, code, m.Cost().Code)
		}
	}
}

// TestCostOfMemory checks what is not spent for one function, against what was
// measured: the machine code is there four times, and of each function 800 bytes stay.
func TestCostOfMemory(t *testing.T) {
	const n, m = 64, 64
	decoded, err := rewrite.Decode(bombs.Shapes(n, m)["functions"]().WASM())
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
		decoded, err := rewrite.Decode(bombs.Shape{Types: [][2]int{{0, values}}, More: []bombs.Function{{Type: 2, Body: append(times(values, 0x41, 1), more...)}}}.WASM())
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
		"back edges":            {300, 60, "local variables"},
		"types":                 {4000, 1000, "types"},
	} {
		t.Run(name, func(t *testing.T) {
			wasm := bombs.Shapes(bomb.n, bomb.m)[name]().WASM()
			_, err := meter(wasm)
			var costly *rewrite.CostError
			if !errors.As(err, &costly) || !strings.Contains(err.Error(), bomb.want) {
				t.Errorf("%d bytes: err = %v, want one with %q", len(wasm), err, bomb.want)
			}
			t.Logf("%d bytes: %v", len(wasm), err)
		})
	}
}

// TestBombsOfTime checks the weights of what takes long, and little machine code and memory:
// the engine climbs from each block to the beginning of its function, for one. What is
// refused here took two to twenty seconds.
func TestBombsOfTime(t *testing.T) {
	for _, bomb := range []struct {
		shape string
		n, m  int
	}{
		{"ifs with another half", 10_000, 2},
		{"ifs with another half", 400, 1000},
		{"tables", 3900, 1},
		{"divisions", 1000, 800},
		{"truncations", 1000, 400},
		{"types", 300, 1000},
		{"loops over locals", 250, 3000},
		{"nested loops over locals", 100, 1000},
		{"loops over locals", 200, 1000},
		{"functions", 4000, 240},
	} {
		_, err := meter(bombs.Shapes(bomb.n, bomb.m)[bomb.shape]().WASM())
		if costly := (*rewrite.CostError)(nil); !errors.As(err, &costly) || !strings.Contains(err.Error(), " steps to compile; ") {
			t.Errorf("%s, %d times %d: err = %v, want one about steps", bomb.shape, bomb.n, bomb.m, err)
		}
	}
}

// TestLongFunctions checks that one function has no more than a worker compiles in two seconds.
func TestLongFunctions(t *testing.T) {
	for shape, m := range map[string]int{"loads": 420, "vectors, products": 820} {
		if _, err := meter(bombs.Shapes(1000, m)[shape]().WASM()); err == nil || !strings.Contains(err.Error(), "loads, stores and vector instructions, more than 100000") {
			t.Errorf("%s: err = %v", shape, err)
		}
		if _, err := meter(bombs.Shapes(1000, m*9/10)[shape]().WASM()); err != nil {
			t.Errorf("%s, a tenth less: err = %v", shape, err)
		}
	}
}
