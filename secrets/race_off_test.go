//go:build !race

package secrets_test

// raced says that the race detector is on.
const raced = false

// secretsOfEach is how many secrets are made for each rule.
const secretsOfEach = 4
