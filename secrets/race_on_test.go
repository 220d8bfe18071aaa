//go:build race

package secrets_test

// raced says that the race detector is on. A scan is the work of one goroutine, in which
// it can find nothing: with it there is less of what is only repeated.
const raced = true

// secretsOfEach is how many secrets are made for each rule.
const secretsOfEach = 1
