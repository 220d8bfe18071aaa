package sandbox

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// These are written by cmd/pack of the module sandbox/tools.
var (
	//go:embed tools.wasm.gz
	packedTools []byte
	//go:embed files.wasm.gz
	packedFiles []byte
)

// EmbeddedTools returns the module that holds the tools which wasmgate brings
// along and which need no capability: csv_query, hash, html_to_text, json_query
// and text_diff. It carries its manifest. Its sources are in sandbox/tools.
func EmbeddedTools() ([]byte, error) { return unpack(packedTools) }

// EmbeddedFiles returns the module that holds the tools which wasmgate brings
// along and which read granted directories: repo_scan.
func EmbeddedFiles() ([]byte, error) { return unpack(packedFiles) }

// EmbeddedToolsManifest returns the manifest that the module of [EmbeddedTools]
// carries, without unpacking the module.
func EmbeddedToolsManifest() (Manifest, error) {
	z, err := gzip.NewReader(bytes.NewReader(packedTools))
	if err != nil {
		return Manifest{}, fmt.Errorf("sandbox: read the embedded tools: %w", err)
	}
	// The only subfield of the header: two letters, a length, the manifest.
	if len(z.Extra) < 4 || string(z.Extra[:2]) != "WG" {
		return Manifest{}, errors.New("sandbox: this program was built wrongly: its embedded tools have no manifest")
	}
	return parseManifest(z.Extra[4:])
}

func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("sandbox: unpack the embedded tools: %w", err)
	}
	// A gzip file ends with its unpacked size (RFC 1952, 2.3.1).
	wasm := make([]byte, binary.LittleEndian.Uint32(packed[len(packed)-4:]))
	if _, err := io.ReadFull(z, wasm); err != nil {
		return nil, fmt.Errorf("sandbox: unpack the embedded tools: %w", err)
	}
	return wasm, nil
}

// EmbeddedCompiled reports whether the cache holds the machine code of the module of
// [EmbeddedTools], without unpacking it.
func EmbeddedCompiled(r *Runtime) bool { return r.cache.Has(embeddedTools().key) }

// CompileEmbedded has the cache hold that machine code. It is loaded by LoadEmbedded.
func CompileEmbedded(ctx context.Context, r *Runtime) error {
	if err := r.begin(); err != nil {
		return err
	}
	defer r.end()
	p, err := r.look(embeddedTools())
	if err == nil {
		err = r.rewrite(p)
	}
	if err != nil {
		return err
	}
	return r.fill(ctx, embeddedTools(), p)
}

// LoadEmbedded is as [Runtime.Compile] of [EmbeddedTools], which it does not unpack if
// the cache holds their machine code.
func LoadEmbedded(ctx context.Context, r *Runtime) (*Module, error) {
	return r.compile(ctx, embeddedTools(), ModuleConfig{Name: "embedded tools"})
}

func embeddedTools() origin { return origin{keyOf(packedTools), EmbeddedTools} }
