// Package examples holds programs that show how to use wasmgate; README.md says how to run each.
package examples
