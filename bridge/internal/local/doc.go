// Package local is a server without a connection: a [Server] is made of Go functions,
// behind which WASM modules may stand. Its tools by which clients search for others are
// [CatalogTools].
package local
