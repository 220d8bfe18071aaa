//go:build race

package policy_test

// raced says that the race detector is on.
const raced = true
