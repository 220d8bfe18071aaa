package dispatch

import (
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
)

// A Dispatcher answers the requests of clients, whatever transport they came by. Use it from
// several goroutines.
type Dispatcher struct {
	Place
	*backend
	*carrier
	*hearing
	sessionIDs

	methods map[string]method
	clients *sessions.Clients

	tools    tools
	features features
	lists    lists
	pages    appPages
	skills   skillSet
	tasks    *tasks
}

// Clients returns the clients that have sessions.
func (d *Dispatcher) Clients() *sessions.Clients { return d.clients }

// UnderWay is how many requests of clients have begun and not ended.
func (d *Dispatcher) UnderWay() int { return d.calls.Count() }
