//go:build wasip1

// Command v2 is a plug-in in the convention of hyper-mcp's version 2, written
// against the bare ABI.
package main

import "encoding/json"

//go:wasmimport extism:host/env input_offset
func inputOffset() uint64

//go:wasmimport extism:host/env length_unsafe
func length(offset uint64) uint64

//go:wasmimport extism:host/env load_u64
func loadU64(offset uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadU8(offset uint64) uint32

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env store_u8
func storeU8(offset uint64, b uint32)

//go:wasmimport extism:host/env output_set
func outputSet(offset, n uint64)

//go:wasmimport extism:host/user create_elicitation
func createElicitation(request uint64) uint64

//go:wasmimport extism:host/user create_message
func createMessage(request uint64) uint64

//go:wasmimport extism:host/user get_access_token
func getAccessToken(request uint64) uint64

//go:wasmimport extism:host/user get_keyring_secret
func getKeyringSecret(request uint64) uint64

//go:wasmimport extism:host/user list_roots
func listRoots() uint64

//go:wasmimport extism:host/user notify_logging_message
func notifyLoggingMessage(request uint64)

//go:wasmimport extism:host/user notify_progress
func notifyProgress(request uint64)

//go:wasmimport extism:host/user notify_tool_list_changed
func notifyToolListChanged()

func main() {}

func get(at uint64) []byte {
	b := make([]byte, length(at))
	i := 0
	for ; i+8 <= len(b); i += 8 {
		word := loadU64(at + uint64(i))
		for j := range 8 {
			b[i+j] = byte(word >> (8 * j))
		}
	}
	for ; i < len(b); i++ {
		b[i] = byte(loadU8(at + uint64(i)))
	}
	return b
}

func put(s string) uint64 {
	at := alloc(uint64(len(s)))
	for i := range len(s) {
		storeU8(at+uint64(i), uint32(s[i]))
	}
	return at
}

func output(v any) {
	b, _ := json.Marshal(v)
	outputSet(put(string(b)), uint64(len(b)))
}

type object = map[string]any

//go:wasmexport list_tools
func listTools() int32 {
	var in struct{ Context struct{ ID any } }
	if err := json.Unmarshal(get(inputOffset()), &in); err != nil || in.Context.ID == nil {
		return 2
	}
	output(object{"tools": []object{{"name": "ask", "title": "Ask", "inputSchema": object{"type": "object"}, "outputSchema": object{"type": "object"}, "annotations": object{"readOnlyHint": true}}}})
	return 0
}

//go:wasmexport call_tool
func callTool() int32 {
	var in struct {
		Request struct {
			Name      string
			Arguments json.RawMessage
		}
		Context struct{ ID any }
	}
	if err := json.Unmarshal(get(inputOffset()), &in); err != nil || in.Context.ID == nil {
		return 2
	}
	if in.Request.Name != "ask" {
		return 3
	}
	notifyLoggingMessage(put(`{"level":"warning","data":"asking"}`))
	notifyProgress(put(`{"progress":1}`))
	notifyToolListChanged()
	answers := object{
		"arguments": in.Request.Arguments,
		"secret":    len(get(getKeyringSecret(put(`{"service":"s","user":"u"}`)))),
	}
	for name, at := range map[string]uint64{"elicitation": createElicitation(put("{}")), "message": createMessage(put("{}")), "token": getAccessToken(put("{}")), "roots": listRoots()} {
		answers[name] = json.RawMessage(get(at))
	}
	output(object{"content": []object{{"type": "text", "text": "asked"}}, "structuredContent": answers})
	return 0
}
