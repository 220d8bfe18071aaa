package session

import "github.com/wasmgate/wasmgate/gate"

// A key names what is kept: a session, or the record of a program of a principal.
type key struct {
	gate.SessionKey
	program bool // ID names a program: see [Sessions.Begin]
}

// recordOf returns the key of the record of a program.
func recordOf(o gate.Owner, program string) key {
	return key{gate.SessionKey{Owner: o, ID: program}, true}
}
