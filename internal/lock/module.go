package lock

import "github.com/wasmgate/wasmgate/gate"

// Module is a WASM module with tools. Its document has all that decides what runs: the digest
// of the file, and what the manifest says but the definitions of tools, which are pinned by
// themselves. See [ModuleOf].
const Module Kind = "module"

var moduleKind = kind{Kind: Module, subject: "module"}

// ModuleOf returns what a module with tools is pinned as: its hex SHA-256, and all else that
// decides what runs, an object.
func ModuleOf(sha256 string, settings gate.Doc) gate.Doc {
	return settings.With("code", []byte(`"`+hash+sha256+`"`))
}
