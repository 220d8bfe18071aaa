package gate

import "errors"

// A RelayedError is that of a call which a tool made by [Permit.Relay].
type RelayedError struct {
	Call string // its ID, by which it is recorded
	Err  error
}

// Error is that of the call.
func (e *RelayedError) Error() string { return e.Err.Error() }

// Unwrap returns what the call has failed by.
func (e *RelayedError) Unwrap() error { return e.Err }

// RecordID returns the ID under which the outcome of a call is recorded: that of the
// call which err is of, if it was made for another, and otherwise call.
func RecordID(call string, err error) string {
	if r, ok := errors.AsType[*RelayedError](err); ok {
		return r.Call
	}
	return call
}
