//go:build !race

package compiler

// slower is how many times as long a child with the race detector may take, and as much
// memory; this one has none.
const slower = 1

// native returns a program that compiles in the place of this one; only one with the race
// detector has any.
func native() string { return "" }
