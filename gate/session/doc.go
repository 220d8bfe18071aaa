// Package session has the names by which programs made the sessions of a gate of their own
// in an earlier version. They go with the next one.
package session
