// Package session has the names by which programs made the sessions of a gate of their own
// in an earlier version. They go with the next one.
package session

import "github.com/wasmgate/wasmgate/internal/session"

// Deprecated: use an implementation of gate.Sessions.
type Sessions = session.Sessions

// New returns Sessions with what a file has kept.
//
// Deprecated: use an implementation of gate.Sessions.
func New(o session.Options) *Sessions { return session.New(o) }
