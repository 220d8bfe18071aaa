package app

import (
	"encoding/json"
	"errors"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/find"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// callFailure is a [calls.Error] with what its JSON for users leaves out.
type callFailure struct {
	calls.Error
	Remedy   string `json:"remedy"`
	Cause    string `json:"cause"`
	Question string `json:"question"`
}

// The codes of errors that are of the same type on both sides of the socket.
const (
	codeCall      = "call"
	codePrincipal = "principal"
	codeApproval  = "approval" // a *gate.NotApproved
	codeAmbiguous = "ambiguous"
	codeNoPin     = "no-pin" // wraps lock.ErrNothing
	codeKey       = "key"    // a *operation.MisuseError
	codeDenied    = "denied" // a *gate.Refusal of what an operator would do
)

// wire makes an error that crosses the socket, and unwire the same of it again.
func wire(err error) error {
	var call *calls.Error
	var who *naming.PrincipalError
	var unapproved *gate.NotApproved
	var several *find.AmbiguousError
	var key *operation.MisuseError
	var denied *gate.Refusal
	e := &control.Error{}
	switch {
	case errors.As(err, &call):
		e.Code = codeCall
		e.Detail, _ = json.Marshal(callFailure{*call, call.Remedy, call.Cause, call.Question}) // strings only
	case errors.As(err, &who):
		e.Code = codePrincipal
		e.Detail, _ = json.Marshal(who) // strings only
	case errors.As(err, &unapproved):
		e.Code = codeApproval
	case errors.Is(err, lock.ErrNothing):
		e.Code = codeNoPin
	case errors.As(err, &key):
		e.Code = codeKey
	case errors.As(err, &several):
		e.Code = codeAmbiguous
		e.Detail, _ = json.Marshal(several) // strings only
	case errors.As(err, &denied):
		e.Code = codeDenied
		e.Detail, _ = json.Marshal(gate.Refusal{Step: denied.Step, Name: denied.Name, Reason: denied.Reason}) // strings only
	default:
		return err
	}
	e.Message = err.Error()
	return e
}

func unwire(err error) error {
	var e *control.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case codeCall:
		var f callFailure
		if err := json.Unmarshal(e.Detail, &f); err != nil {
			return err
		}
		f.Error.Remedy, f.Error.Cause, f.Error.Question = f.Remedy, f.Cause, f.Question
		return &f.Error
	case codePrincipal:
		who := new(naming.PrincipalError)
		if err := json.Unmarshal(e.Detail, who); err != nil {
			return err
		}
		return who
	case codeAmbiguous:
		several := new(find.AmbiguousError)
		if err := json.Unmarshal(e.Detail, several); err != nil {
			return err
		}
		return several
	case codeDenied:
		denied := new(gate.Refusal)
		if err := json.Unmarshal(e.Detail, denied); err != nil {
			return err
		}
		return denied
	case codeApproval:
		return &gate.NotApproved{Reason: e.Message}
	case codeKey:
		return &operation.MisuseError{Reason: e.Message}
	case codeNoPin:
		return &nothingError{e.Message}
	}
	return err
}

// nothingError is a [lock.ErrNothing] of the other side.
type nothingError struct{ text string }

func (e *nothingError) Error() string { return e.text }

func (e *nothingError) Unwrap() error { return lock.ErrNothing }
