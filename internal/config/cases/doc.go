// Package cases reads the test cases of a WASM module: calls of its tools, what they may use
// meanwhile, and what is expected of them.
package cases
