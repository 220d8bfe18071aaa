package extism_test

import (
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

// wordsModule returns a module whose function words(at, n) loads and stores
// the word at an offset n times.
func wordsModule() []byte {
	section := func(id byte, items ...[]byte) []byte {
		return slices.Concat([]byte{id}, vector(slices.Concat(leb(len(items)), slices.Concat(items...))))
	}
	imported := func(name string, kind byte) []byte {
		return slices.Concat(vector([]byte(extism.EnvModule)), vector([]byte(name)), []byte{0, kind})
	}
	body := []byte{
		0,          // no locals
		0x03, 0x40, // loop
		0x20, 0, 0x20, 0, 0x10, 0, 0x10, 1, // store_u64(at, load_u64(at))
		0x20, 1, 0x42, 1, 0x7d, 0x22, 1, 0x50, 0x45, 0x0d, 0, // n--; again unless 0
		0x0b, 0x0b,
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{0x60, 1, 0x7e, 1, 0x7e}, []byte{0x60, 2, 0x7e, 0x7e, 0}),
		section(2, imported("load_u64", 0), imported("store_u64", 1)),
		section(3, []byte{1}),
		section(7, slices.Concat(vector([]byte("words")), []byte{0, 2})),
		section(10, vector(body)))
}

// BenchmarkWord measures what it takes a guest to load a word and to store one,
// with a meter: two host calls.
func BenchmarkWord(b *testing.B) {
	mod, err := newRuntime(b).InstantiateWithConfig(b.Context(), wordsModule(), wazero.NewModuleConfig().WithName(""))
	if err != nil {
		b.Fatal(err)
	}
	moved := 0
	p := &extism.Plugin{Input: make([]byte, 64), Charge: func(n int) error { moved += n; return nil }}
	words := mod.ExportedFunction("words")
	const round = 10_000
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := words.Call(with(b.Context(), p), 16, round); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/round, "ns/word")
	if moved != 64+n*round*16 {
		b.Errorf("%d bytes were charged for", moved)
	}
}

// BenchmarkCall measures a whole call of a plug-in written in Go, on a warm
// instance: input and output of 400 bytes through the host's heap.
func BenchmarkCall(b *testing.B) {
	mod := instance(b, newRuntime(b), build(b, "testdata/v1"))
	in, err := extism.Request(extism.V1, "greet", []byte(`{"name":"`+string(slices.Repeat([]byte("n"), 400))+`"}`))
	if err != nil {
		b.Fatal(err)
	}
	call := mod.ExportedFunction(extism.V1.Call())
	b.ReportAllocs()
	for b.Loop() {
		p := &extism.Plugin{Input: in}
		res, err := call.Call(with(b.Context(), p))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Answer(res); err != nil {
			b.Fatal(err)
		}
	}
}
