package bridge

import "encoding/json"

// JSON-RPC error codes (JSON-RPC 2.0, section 5.1).
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

// Codes of JSON-RPC errors of MCP 2026-07-28 (basic, "Error Codes").
const (
	codeHeaderMismatch = -32020
	codeUnsupported    = -32022 // the revision
)

// maxID bounds the id of a request, in bytes: it is sent back.
const maxID = 256

// rpcError is a JSON-RPC error for a client.
type rpcError struct {
	code    int64
	message string
	data    []byte // JSON; nil if there is none
}

func (e *rpcError) Error() string { return e.message }

// json returns the error as a message has it.
func (e *rpcError) json() []byte {
	m := map[string]any{"code": e.code, "message": e.message}
	if e.data != nil {
		m["data"] = json.RawMessage(e.data)
	}
	return mustJSON(m)
}

// nonsense is the error of who broke the protocol, not the connection.
type nonsense struct{ err error }

func (e *nonsense) Error() string { return e.err.Error() }
func (e *nonsense) Unwrap() error { return e.err }
