// Package hungup reports whether the other end of a stream is closed in both directions, without
// reading or writing: a client that ended its input may still read, a client that was killed does not.
package hungup
