package transport

import (
	"cmp"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A Front takes what clients send, over HTTP and in lines, and has it answered.
type Front struct {
	access   Access
	terms    atomic.Pointer[Terms]
	dispatch *dispatch.Dispatcher
	clients  *sessions.Clients
	offer    gate.Groups // what clients over HTTP are offered
	bodies   *bodies
	peers    options.Peers // nil without other gateways
	homes    func() bool
	owners   owners
}

// Access says which clients over HTTP are served, and as whom.
type Access struct {
	// Principal finds out who sends a request over HTTP, before its body is read. If Principal is
	// nil, all requests are from Who. An error that is an [http.Handler] answers the request; any
	// other is answered with 401, and its text is not shown. The principal in the context of a
	// request takes precedence: see [WithPrincipal].
	Principal func(*http.Request) (*gate.Principal, error)
	// Revocations is how many credentials were revoked: see [gate.Call].
	Revocations func() uint32
	// Challenge, if not nil, returns the header WWW-Authenticate of the answer to a request over
	// HTTP whose token lacks scopes for it.
	Challenge func(r *http.Request, scopes []string) string
	// The principal of all requests over HTTP if Principal is nil. Nil is [gate.Local].
	Who *gate.Principal
	// Group reports whether there is a group, for clients over HTTP that are offered one
	// alone: see [GroupParam]. Nil knows none.
	Group func(name string) bool
}

// Terms may change while a front serves: see [Front.Change].
type Terms struct {
	// MaxBody bounds a message of a client, in bytes; on standard input that of clients to
	// come. Zero means 4 MiB.
	MaxBody int64
	// Origins and Hosts are allowed in those headers of HTTP requests, in addition to
	// loopback. An origin is scheme://host[:port], a host is host[:port].
	Origins, Hosts []string
	// Drain is how long a client in lines that has closed its output gets answers to what it has
	// sent: a script may send all its requests, and read afterwards.
	Drain time.Duration
}

const defaultMaxBody = 4 << 20

// New returns the front of a dispatcher. It needs [Front.Change] before its first request.
func New(d *dispatch.Dispatcher, a Access) *Front {
	if a.Who == nil {
		a.Who = gate.Local()
	}
	return &Front{access: a, dispatch: d, clients: d.Clients(), bodies: newBodies()}
}

// Change replaces the terms for requests to come.
func (f *Front) Change(t Terms) {
	t.MaxBody = cmp.Or(t.MaxBody, defaultMaxBody)
	f.terms.Store(&t)
}
