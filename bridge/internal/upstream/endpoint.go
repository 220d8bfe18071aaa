package upstream

import (
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/drain"
)

// An Endpoint is the connection to one server. It connects when it is told to, and
// again by itself whenever it is faulted. It is a [gate.Upstream] of that server's
// tools alone. Use it from several goroutines.
type Endpoint struct {
	cfg     Config
	wg      sync.WaitGroup
	uses    drain.Counter // by a fleet
	methods []*gate.Tool

	audience      *audience // whose connection it is; nil of one that is shared
	audiences     audiences // of the same server; none of one that is somebody's own
	under         underWay
	levels        *Levels // of a whole fleet
	subscriptions subscriptions
	circuit       pace.Circuit
	life
	declarations
	watchers
}

// watchers are whom an endpoint tells of what happens. They must not block.
type watchers struct {
	changed func()            // the tools or the phase are others now
	observe func(Declaration) // sees each listing before it is offered
	tell    func(mcp.Notice)  // what nobody's call is told
}

// declarations are what was observed last.
type declarations struct {
	joining   sync.Mutex  // one listing after the other is put together
	declaring sync.Mutex  // one declaration after the other is observed
	declared  Declaration // the last one of all that the server lists
}

// New returns an endpoint in phase Idle. It starts nothing.
func New(cfg Config) (*Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return newEndpoint(cfg), nil
}

// newEndpoint returns an endpoint with a configuration that was checked.
func newEndpoint(cfg Config) *Endpoint {
	return &Endpoint{
		cfg: cfg, methods: listing.NewMethods(cfg.Server, cfg.Tools, cfg.Methods),
		levels: new(Levels), subscriptions: subscriptions{turn: make(chan struct{}, 1)},
		life: life{
			phase: Idle, tools: new(listing.Tools), closed: make(chan struct{}), turn: make(chan struct{}),
			pauses: pace.Backoff{First: firstPause, Most: maxPause},
		},
		watchers: watchers{changed: func() {}, observe: func(Declaration) {}, tell: func(mcp.Notice) {}},
	}
}

// Join makes the endpoint one of a fleet, which keeps the levels of all, and is told of
// what happens. It is called before the endpoint is connected; none of the functions may
// block.
func (e *Endpoint) Join(all *Levels, changed func(), observe func(Declaration), tell func(mcp.Notice)) {
	e.levels, e.watchers = all, watchers{changed, observe, tell}
}

// Phase returns where the endpoint is in its life.
func (e *Endpoint) Phase() Phase {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase
}
