// Command native compiles modules for programs with the race detector; see package
// unraced.
package main

import "github.com/wasmgate/wasmgate/sandbox/internal/compiler"

func main() { compiler.Main() }
