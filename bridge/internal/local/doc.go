// Package local is a server without a connection: a [Server] is made of Go functions,
// behind which WASM modules may stand. Its tools by which clients search for others are
// [CatalogTools].
//
// The fleet has it beside the servers with a connection; a call comes with its permit and is a
// function call. local.go has the tools, features.go prompts and resources beside them, catalog.go
// the tools of the catalog.
package local
