package rewrite_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestPieces moves memory plain and in pieces: memory is the same, and so is the
// trap, before which nothing is moved.
func TestPieces(t *testing.T) {
	unraced.Long(t)
	const pages, piece = 6, 64 << 10
	operands := join(get(0), get(1), get(2))
	// fill, copy and init of three operands, and a fourth that gives each page of
	// memory another content.
	wasm := join([]byte("\x00asm\x01\x00\x00\x00"),
		vector8(1, [][]byte{{0x60, 3, tI32, tI32, tI32, 0}}), vector8(3, [][]byte{{0}, {0}, {0}}), vector8(5, [][]byte{{0, pages}}),
		vector8(7, [][]byte{[]byte("\x04fill\x00\x00"), []byte("\x04copy\x00\x01"), []byte("\x04init\x00\x02"), []byte("\x06memory\x02\x00")}),
		[]byte{12, 1, 1},
		vector8(10, [][]byte{
			sized(join([]byte{0}, operands, []byte{0xfc, 11, 0, 0x0b})),
			sized(join([]byte{0}, operands, []byte{0xfc, 10, 0, 0, 0x0b})),
			sized(join([]byte{0}, operands, []byte{0xfc, 8, 0, 0, 0x0b})),
		}),
		vector8(11, [][]byte{append([]byte{1}, sized(each(3*piece, func(i int) []byte { return []byte{byte(i * i >> 3)} }))...)}))
	modules := map[form]api.Module{}
	for _, f := range []form{plain, metered} {
		m, err := newWorld(t, f).instantiate(t, wasm, "")
		if err != nil {
			t.Fatal(err)
		}
		modules[f] = m
	}
	content := make([]byte, pages*piece)
	for i := 0; i < len(content); i += 8 {
		binary.LittleEndian.PutUint64(content[i:], uint64(i/8)*0x9e3779b97f4a7c15)
	}
	outcome := func(f form, name string, args [3]uint64) string {
		m := modules[f]
		m.Memory().Write(0, content)
		_, err := m.ExportedFunction(name).Call(t.Context(), args[:]...)
		return memory(m) + cause(err)
	}
	for _, name := range []string{"fill", "copy", "init"} {
		t.Run(name, func(t *testing.T) {
			for _, length := range []uint64{0, 1, piece - 1, piece, piece + 1, 2 * piece, 3*piece - 8, 3 * piece, 3*piece + 1, 6 * piece, 6*piece + 1, 1 << 31, 1<<32 - 1} {
				for _, to := range []uint64{0, 1, piece + 3, 3 * piece, 3*piece + 1, 6 * piece, 6*piece + 1, 1<<32 - 1} {
					for _, from := range []uint64{0, 2, piece, 3*piece - 1, 3 * piece, 1<<32 - 1} {
						args := [3]uint64{to, from, length}
						if a, b := outcome(plain, name, args), outcome(metered, name, args); a != b {
							t.Errorf("%v: plain %s, metered %s", args, a, b)
						}
					}
				}
			}
		})
	}
}

// memory tells memories apart.
func memory(m api.Module) string {
	b, _ := m.Memory().Read(0, m.Memory().Size())
	return fmt.Sprintf("%d bytes %x ", len(b), sha256.Sum256(b))
}

// cause is the innermost one of an error.
func cause(err error) (s string) {
	for ; err != nil; err = errors.Unwrap(err) {
		s = err.Error()
	}
	return s
}
