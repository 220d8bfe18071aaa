package bridge

import (
	"errors"
	"net"
)

// An unseen error says that the server cannot have seen the message.
type unseen struct{ err error }

func (e *unseen) Error() string { return e.err.Error() }

func (e *unseen) Unwrap() error { return e.err }

// asUnseen returns err, marked if the message of which it tells was not sent.
func asUnseen(err, sending error) error {
	if _, never := errors.AsType[*unseen](sending); never && err != nil {
		return &unseen{err}
	}
	return err
}

// notDialled marks an error of a connection that could not be made, over which
// nothing was sent.
func notDialled(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return &unseen{err}
	}
	return err
}
