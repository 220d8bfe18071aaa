package login

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// Options are what all logins have in common.
type Options struct {
	Vault  *vault.Vault
	Public func() string // public URL of the gateway; "", and nil: none
	// Turn waits until no other gateway changes the credential of a name, and keeps others from it until end
	// is called, for a minute at most. Nil is for a gateway that shares none.
	Turn func(ctx context.Context, name string) (end func(), err error)
	// Seal is the key of what browsers keep during a sign-in; nil is one of this process.
	Seal []byte
	// Node begins the state of each login, by which others find this gateway; "" begins none.
	Node string
	// Note records an event. A login that cannot be recorded is not kept.
	Note func(Event) error
	// Changed, if not nil, is called with each server for which a token has come or gone.
	Changed func(server string)
	Now     func() time.Time // nil: the machine's
}

// An Event is something that happened to a grant.
type Event struct {
	Kind, Server, Issuer string
	Owner                gate.Owner // empty: of everybody
	Credential           string     // the grant's name; never a token
	Scopes               []string
	Err                  error // why it came to nothing
}

// The events that are noted.
const (
	LoggedIn  = "login"
	LoggedOut = "logout"
	Refreshed = "refresh"
)
