// Command pack builds the embedded tools into one WASM module and writes it,
// compressed, to where package sandbox embeds it. Run it in this module's root:
//
//	go run ./cmd/pack
//
// The same toolchain on the same sources writes the same bytes; the version of
// the toolchain stands in the comment of the gzip header.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/tools"
)

// section is the custom section in which the sandbox looks for a manifest.
const section = "wasmgate"

func main() {
	out := flag.String("o", filepath.Join("..", "tools.wasm.gz"), "the `file` to write")
	flag.Parse()
	if err := pack(*out); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(out string) error {
	version, err := goCommand("env", "GOVERSION")
	if err != nil {
		return err
	}
	wasm, err := build()
	if err != nil {
		return err
	}
	if wasm, err = mergeData(wasm); err != nil {
		return err
	}
	manifest, err := tools.Manifest()
	if err != nil {
		return err
	}
	wasm = appendSection(wasm, section, manifest)

	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	z.Comment = strings.TrimSpace(version)
	if _, err := z.Write(wasm); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes, %d compressed, %s\n", out, len(wasm), b.Len(), z.Comment)
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// build returns the module as the Go toolchain makes it.
func build() ([]byte, error) {
	dir, err := os.MkdirTemp("", "pack")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tools.wasm")
	_, err = goCommand("build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./cmd/guest")
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
