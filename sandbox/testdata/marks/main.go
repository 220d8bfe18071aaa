//go:build wasip1

// Command marks is a reactor that looks for what another call has left in its state, and
// leaves marks itself: {"mark": "text"}. Its answer is what it found, "" for nothing.
// With "trap" it ends by a trap then, with "sleep" or "spin" it goes on until it is ended.
package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unsafe"
)

var (
	text  string
	table = map[string]string{}
	heap  = make([]byte, 256<<10)
	grown [][]byte

	// kept holds what the host has a pointer to.
	kept [][]byte
)

// found returns what is marked.
func found() string {
	var all []string
	if text != "" {
		all = append(all, text)
	}
	for k := range table {
		all = append(all, k)
	}
	if at := bytes.Index(heap, []byte("mark")); at >= 0 {
		all = append(all, string(heap[at:at+16]))
	}
	for _, b := range grown {
		all = append(all, string(b[len(b)-16:]))
	}
	return strings.Join(all, " ")
}

func mark(with string) {
	text, table[with] = with, with
	copy(heap[len(heap)/2:], with)
	copy(heap[len(heap)-len(with):], with)
	b := make([]byte, 512<<10)
	copy(b[len(b)-len(with):], with)
	grown = append(grown, b)
}

//go:wasmexport cabi_realloc
func realloc(_ unsafe.Pointer, _, _, size uint32) unsafe.Pointer {
	kept = append(kept, make([]byte, max(size, 8)))
	return unsafe.Pointer(unsafe.SliceData(kept[len(kept)-1]))
}

var result struct{ disc, at, size uint32 }

//go:wasmexport tool_call
func call(_ unsafe.Pointer, _ uint32, at unsafe.Pointer, size uint32) unsafe.Pointer {
	var in struct {
		Mark              string
		Trap, Sleep, Spin bool
	}
	if err := json.Unmarshal(unsafe.Slice((*byte)(at), size), &in); err != nil {
		panic(err)
	}
	was, err := json.Marshal(found())
	if err != nil {
		panic(err)
	}
	mark(in.Mark)
	if in.Sleep {
		time.Sleep(time.Hour)
	}
	for in.Spin {
	}
	if in.Trap {
		panic("as asked")
	}
	kept = append(kept, was)
	result.disc, result.at, result.size = 0, uint32(uintptr(unsafe.Pointer(unsafe.SliceData(was)))), uint32(len(was))
	return unsafe.Pointer(&result)
}

func main() {}
