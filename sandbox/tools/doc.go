// Package tools holds the tools that wasmgate brings along and that are pure
// functions from JSON to JSON: they need no file, no network and no secret.
// Those that read files are in package files, a WASM module of its own, so
// that a directory granted to them is granted to no other.
//
// The gateway does not link them. cmd/pack builds each of the two packages
// into a WASM reactor (cmd/guest) that the sandbox runs like any foreign
// module, one fresh instance a call; this is why they live in a Go module of
// their own, whose dependencies are no dependencies of the gateway. Here they
// can be tested as plain Go.
//
// Every tool reads one JSON object, bounds what it works on, and names the
// offending argument in its errors. To add one, add it to [Module], then run
//
//	go run ./cmd/pack
package tools
