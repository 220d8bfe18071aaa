// Package local implements servers without a connection: a [Server] is made of Go functions, which
// may call WASM modules. [CatalogTools] are the tools by which clients search for others.
//
// A fleet has local servers and servers with a connection. A call of a local server comes with its
// permit and is a function call. local.go implements the tools, features.go prompts and resources,
// catalog.go the tools of the catalog.
package local
