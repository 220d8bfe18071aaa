//go:build !race

package compiler

// slower is how many times as long a child with the race detector may take; this one has none.
const slower = 1
