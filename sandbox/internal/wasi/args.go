package wasi

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

func argsGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.putStrings(mem, a, p.Args)
}

func argsSizesGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return putSizes(mem, a, p.Args)
}

func environGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.putStrings(mem, a, p.Env)
}

func environSizesGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return putSizes(mem, a, p.Env)
}

// sizes returns how many strings there are and their length, each with its NUL.
// The caller of the guest wrote them, so that they are few.
func sizes(list []string) (count, size uint32) {
	for _, s := range list {
		size += uint32(len(s)) + 1
	}
	return uint32(len(list)), size
}

// putSizes answers (count, size) at the two pointers in a.
func putSizes(mem api.Memory, a []uint64, list []string) errno {
	count, size := sizes(list)
	if !mem.WriteUint32Le(uint32(a[0]), count) || !mem.WriteUint32Le(uint32(a[1]), size) {
		return errFault
	}
	return success
}

// putStrings writes the strings, each ended by NUL, and pointers to them.
func (p *Process) putStrings(mem api.Memory, a []uint64, list []string) errno {
	count, size := sizes(list)
	pointers, ok := at(mem, a[0], count*4)
	if !ok {
		return errFault
	}
	text, ok := at(mem, a[1], size)
	if !ok {
		return errFault
	}
	p.charge(len(pointers) + len(text))
	next := uint32(a[1])
	for i, s := range list {
		le.PutUint32(pointers[i*4:], next)
		copy(text, s)
		text[len(s)] = 0
		text = text[len(s)+1:]
		next += uint32(len(s)) + 1
	}
	return success
}
