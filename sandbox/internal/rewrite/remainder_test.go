package rewrite_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// results calls the functions f0, f1, ... of a module with each pair of arguments, and
// returns what they return, or why they trap.
func results(t *testing.T, cfg wazero.RuntimeConfig, wasm []byte, functions int, pairs [][2]uint64) (all []string) {
	t.Helper()
	engine := wazero.NewRuntimeWithConfig(t.Context(), cfg)
	defer engine.Close(t.Context())
	provide(t, engine, 1000)
	m, err := engine.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	for i := range functions {
		f := m.ExportedFunction(fmt.Sprint("f", i))
		for _, p := range pairs {
			if f.Definition().ParamTypes()[0] == tI32 {
				p[0], p[1] = uint64(uint32(p[0])), uint64(uint32(p[1]))
			}
			got, err := f.Call(t.Context(), p[:]...)
			if err != nil {
				all = append(all, fmt.Sprintf("f%d(%x, %x): trap %s", i, p[0], p[1], cause(err)))
			} else {
				all = append(all, fmt.Sprintf("f%d(%x, %x) = %x", i, p[0], p[1], got))
			}
		}
	}
	return all
}

// withMeter returns a module with its meter.
func withMeter(t *testing.T, wasm []byte) []byte {
	t.Helper()
	m, err := rewrite.Decode(wasm)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Meter()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ofPairs returns a module of functions f0, f1, ... from two numbers to one, of the types
// that they have and with the bodies and locals that they have.
func ofPairs(types []byte, bodies ...[]byte) []byte {
	var signatures, functions, exports, code [][]byte
	for i, body := range bodies {
		signatures = append(signatures, []byte{0x60, 2, types[i], types[i], 1, types[i]})
		functions = append(functions, u(nil, i))
		exports = append(exports, u(append(sized([]byte(fmt.Sprint("f", i))), 0), i))
		code = append(code, sized(body))
	}
	return join([]byte("\x00asm\x01\x00\x00\x00"), vector8(1, signatures), vector8(3, functions), vector8(7, exports), vector8(10, code))
}

// TestRemainders compares all four remainders, written as divisions and not, with what Go
// computes: at limits, by zero, and by -1.
func TestRemainders(t *testing.T) {
	const get0, get1, end = 0x20, 0x20, 0x0b
	of := func(op byte) []byte { return []byte{0, get0, 0, get1, 1, op, end} }
	twice := func(op, add byte) []byte { return []byte{0, get0, 0, get0, 1, op, get0, 1, get0, 0, op, add, end} }
	wasm := ofPairs([]byte{tI32, tI32, tI64, tI64, tI32, tI64}, of(0x6f), of(0x70), of(0x81), of(0x82), twice(0x70, 0x6a), twice(0x82, 0x7c))
	var pairs [][2]uint64
	edges := []uint64{0, 1, 2, 3, 7, math.MaxInt32, 1 << 31, 1<<31 + 1, math.MaxUint32 - 1, math.MaxUint32, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}
	for _, a := range edges {
		for _, b := range edges {
			pairs = append(pairs, [2]uint64{a, b})
		}
	}
	want := results(t, wazero.NewRuntimeConfigInterpreter(), wasm, 6, pairs)
	for i, p := range pairs {
		a, b := int32(p[0]), int32(p[1])
		if b == 0 {
			continue
		}
		if line := fmt.Sprintf("f0(%x, %x) = %x", uint32(a), uint32(b), []uint64{uint64(uint32(int32(int64(a) % int64(b))))}); want[i] != line {
			t.Errorf("interpreted: %s, want %s", want[i], line)
		}
	}
	for _, on := range []bool{true, false} {
		if !on && rewrite.DividesForRemainders() {
			continue
		}
		restore := rewrite.DivideForRemainders(on)
		out := withMeter(t, wasm)
		restore()
		for name, cfg := range map[string]wazero.RuntimeConfig{"interpreted": wazero.NewRuntimeConfigInterpreter(), "compiled": wazero.NewRuntimeConfigCompiler()} {
			for i, got := range results(t, cfg, out, 6, pairs) {
				if got != want[i] {
					t.Errorf("as divisions %v, %s: %s, want %s", on, name, got, want[i])
				}
			}
		}
	}
}

// pressed is how many modules TestRemaindersUnderPressure compares. WASMGATE_PRESSED says
// otherwise.
const pressed = 30

// TestRemaindersUnderPressure compares modules in which more numbers live than the processor
// has registers, and many are remainders: compiled, as the sandbox runs them, with interpreted.
func TestRemaindersUnderPressure(t *testing.T) {
	n := pressed
	if s := os.Getenv("WASMGATE_PRESSED"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	first, plain, wrong := seed.Of(t), 0, 0
	for i := range n {
		r := seeded(first + uint64(i))
		wasm := ofPairs([]byte{tI64}, pressing(r))
		pairs := [][2]uint64{{0, 1}, {r.Uint64(), r.Uint64()}, {math.MaxUint64, 1 << 63}}
		want := results(t, wazero.NewRuntimeConfigInterpreter(), wasm, 1, pairs)
		compiled := wazero.NewRuntimeConfigCompiler()
		if fmt.Sprint(results(t, compiled, wasm, 1, pairs)) != fmt.Sprint(want) {
			plain++
		}
		if got := results(t, compiled, withMeter(t, wasm), 1, pairs); fmt.Sprint(got) != fmt.Sprint(want) {
			wrong++
			t.Errorf("seed %d: compiled %s, interpreted %s", first+uint64(i), got, want)
		}
	}
	t.Logf("%d modules: %d are computed wrong as the sandbox runs them, %d as they are", n, wrong, plain)
	if plain > 0 && !rewrite.DividesForRemainders() {
		t.Errorf("the compiler computes %d modules wrong", plain)
	}
}

// pressing returns the body of a function of two i64: it sets 20 to 60 local variables, changes
// them in a loop by one another, and adds all up.
func pressing(r *rand.Rand) []byte {
	n32, n64 := 10+r.IntN(20), 10+r.IntN(30)
	first32, first64, counter := 2, 2+n32, 2+n32+n64
	b := u(nil, 3)
	b = append(u(b, n32), tI32)
	b = append(u(b, n64), tI64)
	b = append(u(b, 1), tI32)
	op := func(code ...byte) { b = append(b, code...) }
	local := func(code byte, i int) { b = u(append(b, code), i) }
	constant := func(code byte, n int64) { b = append(append(b, code), signed(n)...) }
	for i := range n32 + n64 { // from the parameters, each in another way
		local(0x20, r.IntN(2))
		constant(0x42, int64(r.Uint64()>>r.IntN(60)))
		op(0x7c)
		if i < n32 {
			op(0xa7)
		}
		local(0x21, 2+i)
	}
	op(0x03, tNone)
	for range 20 + r.IntN(60) {
		first, n, arithmetic, odd := first32, n32, []byte{0x6f, 0x70, 0x6f, 0x70, 0x6a, 0x6b, 0x6c, 0x73, 0x77, 0x76}, byte(0x72)
		if r.IntN(2) == 0 {
			first, n, arithmetic, odd = first64, n64, []byte{0x81, 0x82, 0x81, 0x82, 0x7c, 0x7d, 0x7e, 0x85, 0x89, 0x88}, 0x84
		}
		code := arithmetic[r.IntN(len(arithmetic))]
		local(0x20, first+r.IntN(n))
		local(0x20, first+r.IntN(n))
		if first == first32 {
			constant(0x41, 1)
		} else {
			constant(0x42, 1)
		}
		op(odd, code) // no divisor is zero
		local(0x21, first+r.IntN(n))
	}
	local(0x20, counter)
	constant(0x41, 1)
	op(0x6a)
	local(0x22, counter)
	constant(0x41, int64(5+r.IntN(30)))
	op(0x48, 0x0d, 0, 0x0b) // again, so often
	constant(0x42, 0)
	for i := range n32 + n64 {
		local(0x20, 2+i)
		if i < n32 {
			op(0xad)
		}
		op(0x7c)
		constant(0x42, 31)
		op(0x7e)
	}
	return append(b, 0x0b)
}
