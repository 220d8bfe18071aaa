package wire

import (
	"errors"
	"net"
)

// An Unseen error says that the server cannot have seen the message.
type Unseen struct{ Err error }

func (e *Unseen) Error() string { return e.Err.Error() }

func (e *Unseen) Unwrap() error { return e.Err }

// asUnseen returns err, marked if its message was not sent, as the error of sending it says.
func asUnseen(err, sending error) error {
	if _, never := errors.AsType[*Unseen](sending); never && err != nil {
		return &Unseen{err}
	}
	return err
}

// notDialled marks an error of a connection that could not be made, over which
// nothing was sent.
func notDialled(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return &Unseen{err}
	}
	return err
}
