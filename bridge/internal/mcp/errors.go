package mcp

import (
	"bytes"
	"encoding/json"
)

// JSON-RPC error codes (JSON-RPC 2.0, section 5.1).
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Codes of JSON-RPC errors of MCP 2026-07-28 (basic, "Error Codes").
const (
	CodeHeaderMismatch = -32020
	CodeUnsupported    = -32022 // the revision
)

// MaxID bounds the id of a request, in bytes: it is sent back.
const MaxID = 256

// Error is a JSON-RPC error for a client.
type Error struct {
	Code    int64
	Message string
	Data    []byte // JSON; nil if there is none
}

func (e *Error) Error() string { return e.Message }

// JSON returns the error as a message has it.
func (e *Error) JSON() []byte {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false) // a client shows it as it is
	err := out.Encode(struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}{e.Code, e.Message, e.Data})
	if err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// ProtocolError is the error of who broke the protocol, not the connection.
type ProtocolError struct{ Err error }

func (e *ProtocolError) Error() string { return e.Err.Error() }
func (e *ProtocolError) Unwrap() error { return e.Err }
