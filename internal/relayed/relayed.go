// Package relayed tells the errors of calls that were made for another call.
package relayed

import "errors"

// An Error is that of a call which a tool made by gate.Permit.Relay.
type Error struct {
	Call string // its ID, by which it is recorded
	Err  error
}

// Error is that of the call.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what the call has failed by.
func (e *Error) Unwrap() error { return e.Err }

// RecordID returns the ID under which the outcome of a call is recorded: that of the
// call which err is of, if it was made for another, and otherwise call.
func RecordID(call string, err error) string {
	if r, ok := errors.AsType[*Error](err); ok {
		return r.Call
	}
	return call
}
