//go:build race

package compiler

import "os"

// slower is how many times as long a child with the race detector may take, and as much memory.
const slower = 5

// native returns a program without the race detector that compiles in the place of this
// one, a tenth as long; "" if there is none. What it makes is the same.
func native() string { return os.Getenv("WASMGATE_NATIVE_COMPILER") }
