package login

import (
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// Need is what a request is to be able to do at most.
type Need struct {
	Scopes []string      // nil: all that was granted
	TTL    time.Duration // for how long a token for this is used; 0: as long as it holds
}

// Needed says that a request cannot be made without a credential, or a better one.
type Needed struct {
	server, text string
	cause        error // nil: no one has logged in
	login        bool  // is what helps
}

// Login returns the server, and whether a login of the caller there is what helps.
func (n *Needed) Login() (server string, helps bool) { return n.server, n.login }

func (n *Needed) Error() string {
	if n.cause != nil {
		return fmt.Sprintf("%s (%v)", n.text, n.cause)
	}
	return n.text
}

func (n *Needed) Unwrap() error { return n.cause }

// Public returns what the caller may read: what to do, and nothing that another party has said.
func (n *Needed) Public() string { return n.text }

// denied is why a person may not use a server that others may use.
type denied struct{ error }

func (d denied) Unwrap() error { return d.error }

// how says how to log in.
func how(k vault.Key) string {
	command := "`wasmgate login " + k.Server
	if k.Principal != "" && k.Principal != gate.Local().ID {
		return "have " + command + " --as " + match.Name(k.Tenant, k.Principal) + "` run on the gateway's machine"
	}
	return "run " + command + "` on the gateway's machine"
}
