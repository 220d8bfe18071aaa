//go:build wasip1

// Command asker is a reactor whose tool does for its caller what a guest can ask
// its host for: {"do": "http" or "kv", "request": {...}}, {"do": "log", "text"},
// {"do": "read", "write", "stat" or "rename", "path", "text"}, {"do": "env"}.
package main

import (
	"encoding/json"
	"errors"
	"os"
	"unsafe"
)

//go:wasmimport wasmgate http
func hostHTTP(at unsafe.Pointer, size uint32, answer unsafe.Pointer)

//go:wasmimport wasmgate kv
func hostKV(at unsafe.Pointer, size uint32, answer unsafe.Pointer)

//go:wasmimport wasmgate log
func hostLog(level uint32, at unsafe.Pointer, size uint32)

// kept holds what the host has a pointer to.
var kept [][]byte

func keep(b []byte) unsafe.Pointer {
	kept = append(kept, b)
	return unsafe.Pointer(unsafe.SliceData(b))
}

//go:wasmexport cabi_realloc
func realloc(_ unsafe.Pointer, _, _, size uint32) unsafe.Pointer {
	return keep(make([]byte, max(size, 8)))
}

// area is a result<string, string> in memory.
type area struct{ disc, at, size uint32 }

// ask calls a host function with a request.
func ask(f func(unsafe.Pointer, uint32, unsafe.Pointer), request []byte) ([]byte, error) {
	var a area
	f(keep(request), uint32(len(request)), unsafe.Pointer(&a))
	answer := unsafe.Slice((*byte)(unsafe.Pointer(uintptr(a.at))), a.size)
	if a.disc&0xff == 1 {
		return nil, errors.New(string(answer))
	}
	return answer, nil
}

func answer(args []byte) ([]byte, error) {
	var in struct {
		Do         string
		Request    json.RawMessage
		Path, Text string
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	switch in.Do {
	case "http":
		return ask(hostHTTP, in.Request)
	case "kv":
		return ask(hostKV, in.Request)
	case "log":
		text := []byte(in.Text)
		hostLog(2, keep(text), uint32(len(text)))
		return []byte("{}"), nil
	case "read":
		b, err := os.ReadFile(in.Path)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"text": string(b)})
	case "write":
		return []byte("{}"), os.WriteFile(in.Path, []byte(in.Text), 0o600)
	case "stat":
		_, err := os.Lstat(in.Path)
		return []byte("{}"), err
	case "rename":
		return []byte("{}"), os.Rename(in.Path, in.Text)
	case "env":
		return json.Marshal(map[string]any{"env": os.Environ()})
	}
	return nil, errors.New("unknown: " + in.Do)
}

var result area

//go:wasmexport tool_call
func toolCall(_ unsafe.Pointer, _ uint32, args unsafe.Pointer, size uint32) unsafe.Pointer {
	out, err := answer(unsafe.Slice((*byte)(args), size))
	result = area{}
	if err != nil {
		result.disc, out = 1, []byte(err.Error())
	}
	result.at, result.size = uint32(uintptr(keep(out))), uint32(len(out))
	return unsafe.Pointer(&result)
}

func main() {}
