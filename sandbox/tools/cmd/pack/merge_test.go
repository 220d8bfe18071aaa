package main

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// module writes a module that has nothing but these data segments.
func module(segments ...segment) []byte {
	body := binary.AppendUvarint(nil, uint64(len(segments)))
	for _, s := range segments {
		body = appendInt32(append(body, 0, 0x41), s.at)
		body = binary.AppendUvarint(append(body, 0x0b), uint64(len(s.content)))
		body = append(body, s.content...)
	}
	wasm := append([]byte("\x00asm\x01\x00\x00\x00"), dataSection)
	return append(binary.AppendUvarint(wasm, uint64(len(body))), body...)
}

// image returns the first size bytes of memory, and the number of segments.
func image(t *testing.T, wasm []byte, size int) ([]byte, int) {
	r := &reader{b: wasm[9:]}
	segments, err := parseData(r.bytes(r.uint()))
	if err != nil {
		t.Fatal(err)
	}
	memory := make([]byte, size)
	for _, s := range segments {
		copy(memory[s.at:], s.content)
	}
	return memory, len(segments)
}

// TestMergeData checks on random segments that memory begins the same.
func TestMergeData(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const size = 1 << 20
	for range 100 {
		var segments []segment
		for at := rnd.IntN(100); at < size-1000; at += rnd.IntN(3 * maxGap) {
			content := make([]byte, rnd.IntN(1000))
			for i := range content {
				content[i] = byte(1 + rnd.IntN(255))
			}
			segments = append(segments, segment{uint32(at), content})
			at += len(content)
		}
		rnd.Shuffle(len(segments), func(i, j int) { segments[i], segments[j] = segments[j], segments[i] })
		wasm := module(segments...)
		merged, err := mergeData(wasm)
		if err != nil {
			t.Fatal(err)
		}
		want, before := image(t, wasm, size)
		got, after := image(t, merged, size)
		if !bytes.Equal(got, want) {
			t.Fatal("memory begins differently")
		}
		if after >= before {
			t.Errorf("%d segments became %d", before, after)
		}
	}
}

func TestMergeDataRefuses(t *testing.T) {
	tests := map[string][]byte{
		"segments that overlap":  module(segment{8, []byte("abc")}, segment{10, []byte("d")}),
		"a passive segment":      append([]byte("\x00asm\x01\x00\x00\x00"), dataSection, 3, 1, 1, 0),
		"a section cut off":      module(segment{8, []byte("abc")})[:14],
		"what is no module":      []byte("\x00asm"),
		"more than the segments": append([]byte("\x00asm\x01\x00\x00\x00"), dataSection, 2, 0, 0),
	}
	for name, wasm := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := mergeData(wasm); err == nil {
				t.Errorf("taken as %x", got)
			}
		})
	}
}

func TestInt32(t *testing.T) {
	for _, v := range []uint32{0, 63, 64, 127, 128, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		r := &reader{b: appendInt32(nil, v)}
		if got := r.int32(); got != v || r.failed || len(r.b) > 0 {
			t.Errorf("%d became %d (failed %v, left %x)", v, got, r.failed, r.b)
		}
	}
}
