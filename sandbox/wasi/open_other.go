//go:build !unix

package wasi

// nonblock is nothing here: there are no FIFOs in directories.
const nonblock = 0
