package rewrite_test

import (
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// module returns a module that exports one function, f, of one i32 to none,
// which has two i32 locals more and this body.
func module(body ...byte) []byte {
	full := slices.Concat([]byte{1, 2, 0x7f}, body, []byte{0x0b})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 0x60, 1, 0x7f, 0), section(3, 0), section(5, 0, 1), section(7, 1, 'f', 0, 0),
		section(10, append([]byte{byte(len(full))}, full...)...))
}

// section writes a section that is a vector of one item, of less than 128 bytes.
func section(id byte, item ...byte) []byte {
	return slices.Concat([]byte{id, byte(len(item) + 1), 1}, item)
}

// BenchmarkLoop measures what metering costs in the tightest loop there is, in
// one that computes a little, and in one that goes through memory.
func BenchmarkLoop(b *testing.B) {
	const rounds = 1_000_000
	count := []byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b} // local 0 -= 1; br_if
	for _, loop := range []struct {
		name string
		body []byte
	}{
		{"tight", append([]byte{0x03, 0x40}, count...)},
		{"mix", slices.Concat([]byte{0x03, 0x40}, // local 1 = rotl(local 1 * 31 ^ local 0, 5)
			[]byte{0x20, 1, 0x41, 31, 0x6c, 0x20, 0, 0x73, 0x41, 5, 0x77, 0x21, 1}, count)},
		{"memory", slices.Concat([]byte{0x03, 0x40}, // mem[local 0 & 0x3ffc] += local 0
			[]byte{0x20, 0, 0x41, 0xfc, 0xff, 0, 0x71, 0x22, 1, 0x20, 1, 0x28, 2, 0, 0x20, 0, 0x6a, 0x36, 2, 0}, count)},
	} {
		plain := module(loop.body...)
		metered, err := meter(plain)
		if err != nil {
			b.Fatal(err)
		}
		for _, kind := range []struct {
			name string
			wasm []byte
		}{{"plain", plain}, {"metered", metered}} {
			b.Run(loop.name+"/"+kind.name, func(b *testing.B) {
				engine := wazero.NewRuntime(b.Context())
				defer engine.Close(b.Context())
				provide(b, engine, 1<<17)
				m, err := engine.Instantiate(b.Context(), kind.wasm)
				if err != nil {
					b.Fatal(err)
				}
				call(b, m, rounds)
				b.ReportAllocs()
				for b.Loop() {
					call(b, m, rounds)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rounds, "ns/round")
			})
		}
	}
}

func call(b *testing.B, m api.Module, n uint64) {
	if _, err := m.ExportedFunction("f").Call(b.Context(), n); err != nil {
		b.Fatal(err)
	}
}
