package sandbox

import (
	"sync"

	"github.com/tetratelabs/wazero/experimental"
)

// A memory is the linear memory of one call's instance. It is what makes the
// memory limit one of the call: the engine knows only one for all modules.
type memory struct {
	buf    []byte
	meter  *meter
	limit  uint64
	denied bool // the guest was refused a growth
}

// Allocate implements [experimental.MemoryAllocator]. A module has at most
// one memory, and an instance is made once.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements [experimental.LinearMemory]; nil makes the guest's
// memory.grow return -1.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.denied = true
		return nil
	}
	if size > uint64(cap(m.buf)) {
		// At least a quarter more, so that growing page by page does not copy
		// everything each time.
		grown := make([]byte, size, max(size, min(uint64(cap(m.buf))*5/4, m.limit)))
		copy(grown, m.buf)
		m.buf = grown
	}
	m.meter.charge(size - uint64(len(m.buf))) // the new pages have to be cleared, and the old ones perhaps copied
	m.buf = m.buf[:size]
	return m.buf
}

// Free implements [experimental.LinearMemory]. The buffer is not freed here:
// a call may still read from it.
func (m *memory) Free() {}

// peak is the most memory that the guest had: it cannot give any back.
func (m *memory) peak() int64 { return int64(len(m.buf)) }

// A buffers keeps zeroed buffers for the next calls of a module. It saves the
// page faults and collections of some megabytes a call, and no state: what a
// guest gets from here is as empty as what the allocator returns.
type buffers struct{ pool sync.Pool }

// take gives m an empty buffer, with the capacity that an earlier call used.
func (b *buffers) take(m *memory) {
	if p, ok := b.pool.Get().(*[]byte); ok {
		m.buf = *p
	}
}

// keep takes the buffer of m, to which nothing may refer any more. Beyond its
// length no guest ever wrote.
func (b *buffers) keep(m *memory) {
	clear(m.buf)
	empty := m.buf[:0]
	b.pool.Put(&empty)
}
