package wasi

import (
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"
)

var le = binary.LittleEndian

const (
	maxVectors = 1024 // as IOV_MAX of Linux
	maxPath    = 4096 // bytes, as PATH_MAX of Linux
)

// at returns a view of size bytes of the guest's memory, which is used within one host call only. A
// pointer is the low half of a stack slot.
func at(mem api.Memory, pointer uint64, size uint32) ([]byte, bool) {
	return mem.Read(uint32(pointer), size)
}

// vectors are the buffers of a scattered read or gathered write: pairs of
// pointer and length in the guest's memory.
type vectors struct {
	mem   api.Memory
	pairs []byte
}

// buffers checks count vectors and returns them with their length together.
// A read may overwrite the pairs themselves, so that each is checked again
// when it is used.
func buffers(mem api.Memory, pointer, count uint64) (v vectors, total int, e errno) {
	n := uint32(count)
	if n > maxVectors {
		return v, 0, errInvalid
	}
	pairs, ok := at(mem, pointer, n*8)
	if !ok {
		return v, 0, errFault
	}
	v = vectors{mem, pairs}
	for i := range v.len() {
		b, ok := v.buffer(i)
		if !ok {
			return v, 0, errFault
		}
		if len(b) > math.MaxInt32-total { // the guest gets the sum in 32 bits
			return v, 0, errInvalid
		}
		total += len(b)
	}
	return v, total, success
}

func (v vectors) len() int { return len(v.pairs) / 8 }

func (v vectors) buffer(i int) ([]byte, bool) {
	pair := v.pairs[i*8:]
	return v.mem.Read(le.Uint32(pair), le.Uint32(pair[4:]))
}
