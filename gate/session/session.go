package session

import "github.com/wasmgate/wasmgate/internal/session"

// New returns the sessions with what a file has kept.
//
// Deprecated: use an implementation of gate.Sessions.
func New(o session.Options) *session.Sessions { return session.New(o) }
