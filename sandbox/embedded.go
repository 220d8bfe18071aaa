package sandbox

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
)

// packedTools is written by cmd/pack of the module sandbox/tools.
//
//go:embed tools.wasm.gz
var packedTools []byte

// EmbeddedTools returns the module that holds the tools which wasmgate brings
// along: csv_query, hash, html_to_text, json_query and text_diff. It carries
// its manifest. Its sources are in sandbox/tools.
func EmbeddedTools() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packedTools))
	if err != nil {
		return nil, fmt.Errorf("sandbox: unpack the embedded tools: %w", err)
	}
	// A gzip file ends with its unpacked size (RFC 1952, 2.3.1).
	wasm := make([]byte, binary.LittleEndian.Uint32(packedTools[len(packedTools)-4:]))
	if _, err := io.ReadFull(z, wasm); err != nil {
		return nil, fmt.Errorf("sandbox: unpack the embedded tools: %w", err)
	}
	return wasm, nil
}
