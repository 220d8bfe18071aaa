//go:build wasip1

// Command v1 is a plug-in in the convention of mcp.run's servlets, written
// against the bare ABI.
package main

import (
	"encoding/json"
	"strings"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoadU8(offset uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func inputLoadU64(offset uint64) uint64

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env free
func free(offset uint64)

//go:wasmimport extism:host/env length
func length(offset uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadU8(offset uint64) uint32

//go:wasmimport extism:host/env store_u8
func storeU8(offset uint64, b uint32)

//go:wasmimport extism:host/env store_u64
func storeU64(offset, word uint64)

//go:wasmimport extism:host/env output_set
func outputSet(offset, n uint64)

//go:wasmimport extism:host/env error_set
func errorSet(offset uint64)

//go:wasmimport extism:host/env config_get
func configGet(key uint64) uint64

//go:wasmimport extism:host/env var_get
func varGet(key uint64) uint64

//go:wasmimport extism:host/env var_set
func varSet(key, value uint64)

//go:wasmimport extism:host/env http_request
func httpRequest(request, body uint64) uint64

//go:wasmimport extism:host/env http_status_code
func httpStatusCode() int32

//go:wasmimport extism:host/env http_headers
func httpHeaders() uint64

//go:wasmimport extism:host/env log_info
func logInfo(offset uint64)

func main() {}

func input() []byte {
	b := make([]byte, inputLength())
	i := 0
	for ; i+8 <= len(b); i += 8 {
		word := inputLoadU64(uint64(i))
		for j := range 8 {
			b[i+j] = byte(word >> (8 * j))
		}
	}
	for ; i < len(b); i++ {
		b[i] = byte(inputLoadU8(uint64(i)))
	}
	return b
}

func put(s string) uint64 {
	at := alloc(uint64(len(s)))
	i := 0
	for ; i+8 <= len(s); i += 8 {
		var word uint64
		for j := range 8 {
			word |= uint64(s[i+j]) << (8 * j)
		}
		storeU64(at+uint64(i), word)
	}
	for ; i < len(s); i++ {
		storeU8(at+uint64(i), uint32(s[i]))
	}
	return at
}

func get(at uint64) string {
	var s strings.Builder
	for i := range length(at) {
		s.WriteByte(byte(loadU8(at + i)))
	}
	return s.String()
}

func output(s string) {
	at := put(s)
	outputSet(at, uint64(len(s)))
	free(at)
}

//go:wasmexport describe
func describe() int32 {
	output(`{"tools":[{"name":"greet","description":"Greets","inputSchema":{"type":"object","properties":{"name":{"type":"string"}}}},` +
		`{"name":"fetch","inputSchema":{"type":"object"}},{"name":"fail","inputSchema":null}]}`)
	return 0
}

//go:wasmexport call
func call() int32 {
	var in struct {
		Params struct {
			Name      string
			Arguments struct{ Name, URL string }
		}
	}
	if err := json.Unmarshal(input(), &in); err != nil {
		errorSet(put(err.Error()))
		return 1
	}
	logInfo(put("called " + in.Params.Name))
	var text string
	switch in.Params.Name {
	case "greet":
		key := put("seen")
		seen := get(varGet(key)) + in.Params.Arguments.Name + ";"
		varSet(key, put(seen))
		text = get(configGet(put("greeting"))) + " " + in.Params.Arguments.Name + ", after " + seen
	case "fetch":
		request, _ := json.Marshal(map[string]any{"url": in.Params.Arguments.URL, "method": "POST", "headers": map[string]string{"Accept": "text/plain"}})
		body := get(httpRequest(put(string(request)), put("ping")))
		text = body + " " + string(rune('0'+httpStatusCode()/100)) + " " + get(httpHeaders())
	default:
		errorSet(put("no tool " + in.Params.Name))
		return 1
	}
	b, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text, "annotations": nil}}, "isError": nil})
	output(string(b))
	return 0
}
