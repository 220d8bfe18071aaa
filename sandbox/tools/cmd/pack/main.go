// Command pack builds the embedded tools into WASM modules and writes them,
// compressed, to where package sandbox embeds them. Run it in this module's root:
//
//	go run ./cmd/pack
//
// The same toolchain on the same sources writes the same bytes; the version of the toolchain is in
// the comment of the gzip header.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/tools"
	"github.com/wasmgate/wasmgate/sandbox/tools/files"
	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

// section is the custom section in which the sandbox looks for a manifest.
const section = "wasmgate"

// modules are built from ./cmd/guest/NAME and written to NAME.wasm.gz.
var modules = map[string]tool.Module{
	"tools": tools.Module(),
	"files": files.Module(),
}

func main() {
	out := flag.String("o", "..", "the `directory` to write to")
	flag.Parse()
	if err := packAll(*out); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func packAll(dir string) error {
	version, err := goCommand("env", "GOVERSION")
	if err != nil {
		return err
	}
	for name, m := range modules {
		packed, err := pack(name, m, strings.TrimSpace(version))
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		file := filepath.Join(dir, name+".wasm.gz")
		if err := os.WriteFile(file, packed, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes\n", file, len(packed))
	}
	return nil
}

func pack(name string, m tool.Module, comment string) ([]byte, error) {
	wasm, err := build("./cmd/guest/" + name)
	if err != nil {
		return nil, err
	}
	if wasm, err = mergeData(wasm); err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	wasm = appendSection(wasm, section, manifest)

	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	z.Comment, z.Extra = comment, subfield(manifest)
	if _, err := z.Write(wasm); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// subfield returns the manifest as a subfield of the gzip header (RFC 1952, 2.3.1.1): a program
// that lists tools need not unpack the module.
func subfield(manifest []byte) []byte {
	return append(binary.LittleEndian.AppendUint16([]byte("WG"), uint16(len(manifest))), manifest...)
}

// build returns the WASM module of a main package, as the Go toolchain makes it.
func build(pkg string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "pack")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "guest.wasm")
	_, err = goCommand("build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, pkg)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// goCommand runs the go command for WASM, without the settings of its user
// that would change the bytes.
func goCommand(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWASM=", "GOEXPERIMENT=", "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// appendSection adds a custom section (WebAssembly Core 2.0, 5.5.3).
func appendSection(wasm []byte, name string, content []byte) []byte {
	body := binary.AppendUvarint(nil, uint64(len(name)))
	body = append(append(body, name...), content...)
	return append(binary.AppendUvarint(append(wasm, 0), uint64(len(body))), body...)
}
