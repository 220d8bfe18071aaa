package dispatch

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/parking"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/internal/product"
)

// A Dispatcher answers the requests of clients, whatever transport they came by. Use it from
// several goroutines.
type Dispatcher struct {
	Place

	cfg   Config
	terms atomic.Pointer[Terms]

	clients   *sessions.Clients
	states    sealed.Sealer
	started   time.Time
	mark      string // tells it from those before it
	parking   *parking.Lot[*parked]
	taskCalls taskCalls
	listeners listeners
	changes   changes
}

// Clients returns the clients that have sessions.
func (d *Dispatcher) Clients() *sessions.Clients { return d.clients }

// info is how the gateway describes itself to clients.
func (d *Dispatcher) info() []byte { return d.terms.Load().info }

// UnderWay is how many requests of clients have begun and not ended.
func (d *Dispatcher) UnderWay() int { return d.calls.Count() }

// Change replaces the terms for requests to come.
func (d *Dispatcher) Change(t Terms) {
	t.info = mcp.MustJSON(serverInfo{cmp.Or(t.Name, product.Name), cmp.Or(t.Version, product.Version()), t.Description})
	d.terms.Store(&t)
}

// serverInfo describes the gateway to clients.
type serverInfo struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}
