// Package tools holds the tools that wasmgate brings along: pure functions from
// JSON to JSON that need no file, no network and no secret.
//
// The gateway does not link them. cmd/pack builds them into one WASM reactor
// (cmd/guest) that the sandbox runs like any foreign module, one fresh instance
// a call; this is why they live in a module of their own, whose dependencies
// are no dependencies of the gateway. Here they can be tested as plain Go.
//
// Every tool reads one JSON object, bounds what it works on, and names the
// offending argument in its errors. To add one, add it to the table in
// [All], then run
//
//	go run ./cmd/pack
package tools
