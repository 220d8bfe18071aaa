package gate_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// TestCaller checks what shares bounds with others: a principal, or a session where
// principals are not told apart.
func TestCaller(t *testing.T) {
	alice := &gate.Principal{Owner: gate.Owner{ID: "alice"}, Auth: "apikey"}
	of := func(who *gate.Principal, session string) gate.SessionKey {
		return (&gate.Call{Who: who, Session: gate.SessionKey{Owner: who.Owner, ID: session}}).Caller()
	}
	if of(alice, "a") != of(alice, "b") {
		t.Error("two sessions of a principal are two callers")
	}
	if of(gate.Local(), "a") == of(gate.Local(), "b") {
		t.Error("two sessions without authentication are one caller")
	}
	if of(alice, "a") == of(gate.Local(), "a") {
		t.Error("two principals are one caller")
	}
}
