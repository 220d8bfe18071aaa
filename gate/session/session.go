package session

import "github.com/wasmgate/wasmgate/internal/session"

// Deprecated: use an implementation of gate.Sessions.
type Sessions = session.Sessions

// New returns Sessions with what a file has kept.
//
// Deprecated: use an implementation of gate.Sessions.
func New(o session.Options) *Sessions { return session.New(o) }
