package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
)

// A reactorCall is the call of a reactor, by the canonical ABI.
type reactorCall struct{ *call }

// answer has an instance answer the call.
func (c reactorCall) answer(in *instance) (Result, error) {
	var stack [4]uint64
	for i, s := range [][]byte{[]byte(c.tool), c.args} {
		at, err := c.lower(in, s)
		if err != nil {
			return Result{}, err
		}
		stack[2*i], stack[2*i+1] = uint64(at), uint64(len(s))
	}
	if err := c.invoke(in.function(exportCall), stack[:]); err != nil {
		return Result{}, c.failure("it trapped", err)
	}
	answer := uint32(stack[0])
	res, err := c.lift(in.mod.Memory(), answer)
	if post := in.function(exportPost); post != nil && err == nil && c.module.isolation == IsolationSession {
		stack[0] = uint64(answer)
		if err := c.invoke(post, stack[:1]); err != nil {
			return Result{}, c.failure("it trapped in "+exportPost, err)
		}
	}
	return res, err
}

// lower copies a string into memory that the guest allocates for it.
func (c *call) lower(in *instance, s []byte) (uint32, error) {
	c.allocating = true
	stack := [4]uint64{0, 0, 1, uint64(len(s))}
	err := c.invoke(in.function(exportRealloc), stack[:])
	c.allocating = false
	if err != nil {
		return 0, c.failure("it trapped in "+exportRealloc, err)
	}
	if !in.mod.Memory().Write(uint32(stack[0]), s) {
		return 0, c.trap(TrapGuest, exportRealloc+" returned a pointer out of bounds", nil)
	}
	return uint32(stack[0]), nil
}

// lift reads a result<string, string>: a discriminant, a pointer, a length
// (Component Model, CanonicalABI.md, Loading).
func (c reactorCall) lift(mem api.Memory, at uint32) (Result, error) {
	area, ok := mem.Read(at, 12)
	if !ok || area[0] > 1 {
		return Result{}, c.trap(TrapGuest, "tool_call returned no result<string, string>", nil)
	}
	isError := area[0] == 1
	from, size := binary.LittleEndian.Uint32(area[4:]), binary.LittleEndian.Uint32(area[8:])
	if int64(size) > c.limits.Output {
		return Result{}, c.trap(TrapGuest, fmt.Sprintf("its output has more than %d bytes", c.limits.Output), nil)
	}
	view, ok := mem.Read(from, size)
	if !ok {
		return Result{}, c.trap(TrapGuest, "its output is outside its memory", nil)
	}
	out := slices.Clone(view) // the guest's memory must not leave the call
	if isError {
		if !utf8.Valid(out) {
			return Result{}, c.trap(TrapGuest, "its error is not UTF-8", nil)
		}
		return Result{Output: out, IsError: true}, nil
	}
	return structured(c.tool, out)
}
