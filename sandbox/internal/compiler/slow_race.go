//go:build race

package compiler

// slower is how many times as long a child with the race detector may take, and as much memory.
const slower = 5
