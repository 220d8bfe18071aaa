package extism_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

const modelHeap = 1 << 20 // bytes

// A model is what a heap should be: blocks by offset, with the byte that each
// was filled with at both of its ends.
type model struct {
	*bare
	blocks map[uint64]modelBlock
	order  []uint64 // offsets of blocks, and of some that were freed
	used   uint64   // bytes that all blocks ever needed, with their rounding
}

type modelBlock struct {
	length uint64
	fill   byte
}

// play does the operations that b encodes, two bytes each, on a heap and on its
// model.
func (m *model) play(b []byte) {
	for ; len(b) >= 2; b = b[2:] {
		op, arg := b[0]%8, uint64(b[1])
		switch op {
		case 0, 1:
			m.alloc(arg)
		case 2:
			m.alloc(arg * 37)
		case 3:
			m.alloc(arg << (arg % 20))
		case 4, 5:
			m.free(arg)
		case 6:
			m.free(arg | 1) // a misaligned one, as likely as not
		case 7:
			m.store(arg)
		}
	}
	for at, block := range m.blocks {
		m.check(at, block)
	}
}

func (m *model) alloc(n uint64) {
	at, err := m.try("alloc", n)
	if err != nil {
		if !errors.Is(err, extism.ErrHeap) {
			m.t.Fatalf("alloc(%d): %v", n, err)
		}
		if room := n + n/8 + 32; m.used+room <= modelHeap {
			m.t.Fatalf("alloc(%d) fails although only %d bytes were ever used", n, m.used)
		}
		return
	}
	if n == 0 {
		if at != 0 {
			m.t.Fatalf("nothing is at %d", at)
		}
		return
	}
	if at == 0 || at%16 != 0 || at+n > modelHeap {
		m.t.Fatalf("alloc(%d) = %d", n, at)
	}
	for other, block := range m.blocks {
		if at < other+block.length && other < at+n {
			m.t.Fatalf("%d bytes at %d overlap the %d at %d", n, at, block.length, other)
		}
	}
	m.used += n + n/8 + 32
	m.blocks[at] = modelBlock{length: n}
	m.order = append(m.order, at)
	m.fill(at, byte(len(m.order)))
}

// fill writes to both ends of a block.
func (m *model) fill(at uint64, b byte) {
	block := m.blocks[at]
	block.fill = b
	m.blocks[at] = block
	m.do("store_u8", at, uint64(b))
	m.do("store_u8", at+block.length-1, uint64(b))
	if block.length >= 16 {
		word := uint64(b) * 0x0101010101010101
		m.do("store_u64", at, word)
		m.do("store_u64", at+block.length-8, word)
	}
}

// pick returns an offset of the past.
func (m *model) pick(n uint64) uint64 {
	if len(m.order) == 0 {
		return 0
	}
	return m.order[n%uint64(len(m.order))]
}

func (m *model) store(n uint64) {
	at := m.pick(n)
	if _, ok := m.blocks[at]; ok {
		m.fill(at, byte(n))
	}
}

// free frees a block, or once more what was freed, or what is no block.
func (m *model) free(n uint64) {
	at := m.pick(n) + n%2*8
	if block, ok := m.blocks[at]; ok {
		m.check(at, block)
		delete(m.blocks, at)
	}
	m.do("free", at)
	if n := m.do("length", at); n != 0 {
		m.t.Fatalf("the freed block at %d has a length of %d", at, n)
	}
}

func (m *model) check(at uint64, block modelBlock) {
	if n := m.do("length", at); n != block.length {
		m.t.Fatalf("the block at %d has a length of %d, want %d", at, n, block.length)
	}
	if first, last := m.do("load_u8", at), m.do("load_u8", at+block.length-1); first != uint64(block.fill) || last != uint64(block.fill) {
		m.t.Fatalf("the block at %d has %d and %d at its ends, want %d", at, first, last, block.fill)
	}
}

func newModel(t testing.TB, mod *bare) *model {
	return &model{bare: &bare{t, mod.mod, &extism.Plugin{MaxHeap: modelHeap}}, blocks: map[uint64]modelBlock{}}
}

// FuzzHeap plays operations of the fuzzer's on a heap and its model; few, since a model takes
// time by the square of them.
func FuzzHeap(f *testing.F) {
	guest := newBare(f)
	f.Add([]byte{0, 1, 0, 2, 4, 0, 0, 1})
	f.Add([]byte{0, 100, 4, 0, 4, 0, 0, 100, 0, 100})
	f.Add([]byte{3, 255, 3, 254, 5, 1, 3, 255, 7, 0, 6, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		newModel(t, guest).play(b[:min(len(b), 1024)])
	})
}

// TestHeap plays random operations on a heap and its model.
func TestHeap(t *testing.T) {
	unraced.Long(t)
	guest := newBare(t)
	random := seed.Rand(t)
	for range 100 {
		b := make([]byte, 400)
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], random.Uint64())
		}
		newModel(t, guest).play(b)
	}
}
