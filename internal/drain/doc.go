// Package drain counts what is under way, so that an end can wait for it.
package drain
