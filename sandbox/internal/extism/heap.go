package extism

import (
	"fmt"
	"math/bits"
)

// A heap is the memory of one call that guest and host both reach, by offsets.
//
// It hands out multiples of granules from the bottom up. Freed blocks are
// handed out again for sizes of the same class, and the last block gives its
// room back. Nothing is ever moved, split or joined.
//
// Its bookkeeping is one uint32 for a granule and holds no pointers, so that
// millions of tiny blocks cost a quarter of the heap and no more, and every
// operation takes the same short time.
type heap struct {
	mem   []byte   // by offset; its end is the most that was ever in use
	marks []uint32 // by granule: length of the block that starts there; freed|next if it is on a list; else 0
	top   uint64   // offset of the first byte that was not handed out
	free  [classes]uint32
	max   uint64 // bytes of mem
}

const (
	granule = 16 // bytes; the first is never handed out, so that no block has an offset of 0
	maxHeap = 1 << 30
	freed   = 1 << 31
	classes = 22*8 + 16 + 1 // of 1<<26 granules, see class
)

// class returns the size of blocks, in granules, that n bytes are served by, and
// its number. Up to 16 granules each size is a class; then there are 8 in every
// doubling, so that no more than a ninth of a block is wasted.
func class(n uint64) (size uint64, number int) {
	size = (n + granule - 1) / granule
	shift := max(0, bits.Len64(size-1)-4)
	steps := (size + 1<<shift - 1) >> shift
	return steps << shift, shift*8 + int(steps)
}

// alloc returns the offset of a new block of n bytes, which is not zeroed. For
// n of 0 it is 0.
func (h *heap) alloc(n uint64) (uint64, error) {
	if n == 0 {
		return 0, nil
	}
	if n > h.max {
		return 0, h.full(n)
	}
	size, number := class(n)
	if at := h.free[number]; at != 0 {
		h.free[number] = h.marks[at] &^ freed
		h.marks[at] = uint32(n)
		return uint64(at) * granule, nil
	}
	start := max(h.top, granule)
	end := start + size*granule
	if end > h.max {
		return 0, h.full(n)
	}
	h.grow(end)
	h.top = end
	h.marks[start/granule] = uint32(n)
	return start, nil
}

func (h *heap) full(n uint64) error {
	return fmt.Errorf("%d bytes more than the %d in use: %w, its limit is %d bytes", n, h.top, ErrHeap, h.max)
}

func (h *heap) grow(end uint64) {
	if more := int(end) - len(h.mem); more > 0 {
		h.mem = append(h.mem, make([]byte, more)...)
		h.marks = append(h.marks, make([]uint32, len(h.mem)/granule-len(h.marks))...)
	}
}

// length returns the length of the block that starts at offset, 0 if none does.
func (h *heap) length(offset uint64) uint64 {
	at := offset / granule
	if offset%granule != 0 || at >= uint64(len(h.marks)) || h.marks[at]&freed != 0 {
		return 0
	}
	return uint64(h.marks[at])
}

// release frees the block that starts at offset. Where none does, it does
// nothing.
func (h *heap) release(offset uint64) {
	n := h.length(offset)
	if n == 0 {
		return
	}
	size, number := class(n)
	at := offset / granule
	if offset+size*granule == h.top {
		h.top, h.marks[at] = offset, 0
		return
	}
	h.marks[at] = freed | h.free[number]
	h.free[number] = uint32(at)
}

// span returns the n bytes at offset. They need not be of one block, nor in
// use: what is no longer in use is still of the same call.
func (h *heap) span(offset, n uint64) ([]byte, error) {
	size := uint64(len(h.mem))
	if offset < granule || offset > size || n > size-offset {
		return nil, fmt.Errorf("%d bytes at offset %#x are outside the heap, which ends at %#x", n, offset, size)
	}
	return h.mem[offset : offset+n], nil
}

// reset forgets all blocks.
func (h *heap) reset() {
	*h = heap{max: h.max}
}
