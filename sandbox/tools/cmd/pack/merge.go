package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

const (
	dataSection = 11
	// maxGap is how many zeros are written to save a segment: a segment costs
	// the runtime more at every instantiation than copying this many bytes.
	maxGap = 4096
)

// A segment is an active piece of data: content copied to an address of
// memory 0 when the module is instantiated.
type segment struct {
	at      uint32
	content []byte
}

var errForm = errors.New("merge data: not a module as the Go toolchain writes it")

// mergeData joins the data segments that lie near each other. Go's linker
// emits one for each run of bytes that are not zero, tens of thousands of
// them, and a WASM runtime spends most of an instantiation on applying them.
// Memory begins as zeros, so that the memory of an instance is the same.
func mergeData(wasm []byte) ([]byte, error) {
	if len(wasm) < 8 {
		return nil, errForm
	}
	out := slices.Clone(wasm[:8])
	for r := (&reader{b: wasm[8:]}); len(r.b) > 0; {
		id := r.bytes(1)
		body := r.bytes(r.uint())
		if r.failed {
			return nil, errForm
		}
		if id[0] == dataSection {
			segments, err := parseData(body)
			if err != nil {
				return nil, err
			}
			if body, err = joined(segments); err != nil {
				return nil, err
			}
		}
		out = append(binary.AppendUvarint(append(out, id[0]), uint64(len(body))), body...)
	}
	return out, nil
}

func parseData(body []byte) ([]segment, error) {
	r := &reader{b: body}
	var segments []segment
	for n := r.uint(); n > 0 && !r.failed; n-- {
		head := r.bytes(2) // flag 0: active, memory 0; i32.const
		at := r.int32()
		end := r.bytes(1)
		s := segment{at, r.bytes(r.uint())}
		if r.failed || !bytes.Equal(head, []byte{0, 0x41}) || end[0] != 0x0b {
			return nil, errForm
		}
		segments = append(segments, s)
	}
	if r.failed || len(r.b) > 0 {
		return nil, errForm
	}
	return segments, nil
}

// joined returns a data section's body with as few segments as maxGap allows.
func joined(segments []segment) ([]byte, error) {
	slices.SortStableFunc(segments, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	var merged []segment
	for _, s := range segments {
		if len(merged) > 0 {
			last := &merged[len(merged)-1]
			end := uint64(last.at) + uint64(len(last.content))
			if uint64(s.at) < end {
				return nil, errors.New("merge data: segments overlap")
			}
			if gap := uint64(s.at) - end; gap <= maxGap {
				last.content = append(append(last.content, make([]byte, gap)...), s.content...)
				continue
			}
		}
		merged = append(merged, segment{s.at, slices.Clone(s.content)})
	}
	body := binary.AppendUvarint(nil, uint64(len(merged)))
	for _, s := range merged {
		body = appendInt32(append(body, 0, 0x41), s.at)
		body = binary.AppendUvarint(append(body, 0x0b), uint64(len(s.content)))
		body = append(body, s.content...)
	}
	return body, nil
}

// A reader takes numbers and bytes off b. After a failure it returns zeros.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.failed = nil, true
		return make([]byte, min(n, 8))
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.bytes(uint64(max(n, 0)))
	r.failed = r.failed || n <= 0
	return v
}

// int32 reads a signed LEB128 and returns it as the address that it means.
func (r *reader) int32() uint32 {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.bytes(1)[0]
		v |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return uint32(v)
		}
	}
	r.failed = true
	return 0
}

// appendInt32 writes an address as the signed LEB128 that i32.const takes.
func appendInt32(b []byte, address uint32) []byte {
	for v := int32(address); ; v >>= 7 {
		c := byte(v & 0x7f)
		if v>>7 == 0 && c&0x40 == 0 || v>>7 == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
