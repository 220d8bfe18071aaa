// Package evict chooses the entry of a full table that makes room for a new one, so that a caller that
// fills the table loses its own entries before those of others.
package evict
