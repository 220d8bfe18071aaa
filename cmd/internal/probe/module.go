package probe

import (
	"bytes"
	"os"
	"strings"
)

// WriteModule writes a WASM tool to a file that ends in .wasm, and its manifest next to it. The
// tool answers with its arguments, which the manifest decides.
func WriteModule(file string) error {
	if err := replace(file, module()); err != nil {
		return err
	}
	return writeManifest(file, false)
}

// approvedArgs and changedArgs are what the module answers with.
const approvedArgs, changedArgs = "as it was approved", "as the manifest was changed"

func writeManifest(file string, changed bool) error {
	args := approvedArgs
	if changed {
		args = changedArgs
	}
	return replace(strings.TrimSuffix(file, ".wasm")+".yaml", []byte(`args: ["`+args+`"]
stdout: text
tools:
  - name: probe_module
    description: Returns its arguments.
    inputSchema: {type: object}
`))
}

// replace writes a file as a whole, unless it has that content.
func replace(file string, content []byte) error {
	if was, err := os.ReadFile(file); err == nil && bytes.Equal(was, content) {
		return nil
	}
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// module is a program for WASI (preview 1) that writes its arguments to standard output, as the
// binary format of WebAssembly has it.
func module() []byte {
	sized := func(s string) string { return string(rune(len(s))) + s } // no part has more than 127 bytes
	section := func(id byte, parts ...string) string {
		return string(rune(id)) + sized(string(rune(len(parts)))+strings.Join(parts, ""))
	}
	imported := func(name string, kind byte) string {
		return sized("wasi_snapshot_preview1") + sized(name) + "\x00" + string(rune(kind))
	}
	const (
		two, four, none = "\x60\x02\x7f\x7f\x01\x7f", "\x60\x04\x7f\x7f\x7f\x7f\x01\x7f", "\x60\x00\x00"

		body = "\x00" + // no locals
			"\x41\x00\x41\x04\x10\x00\x1a" + // args_sizes_get: their number to 0, their size to 4
			"\x41\x10\x41\x80\x04\x10\x01\x1a" + // args_get: pointers to 16, texts to 512
			"\x41\x08\x41\x80\x04\x36\x02\x00" + // at 8: 512 ...
			"\x41\x0c\x41\x04\x28\x02\x00\x36\x02\x00" + // ... and the size
			"\x41\x01\x41\x08\x41\x01\x41\x00\x10\x02\x1a" + // fd_write of that to standard output
			"\x0b"
	)
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, two, four, none) +
		section(2, imported("args_sizes_get", 0), imported("args_get", 0), imported("fd_write", 1)) +
		section(3, "\x02") + // a function
		section(5, "\x00\x01") + // a page of memory
		section(7, sized("memory")+"\x02\x00", sized("_start")+"\x00\x03") +
		section(10, sized(body)))
}
