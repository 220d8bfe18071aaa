package upstream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/listings"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wants"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/drain"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/skills"
)

const (
	// workedTime is how long a connection has to have worked for its end to be worth
	// an attempt at once: a server that ends whenever it is spoken to gets pauses.
	workedTime = 10 * time.Second
	// The pause before another attempt is random, so that many gateways do not come
	// back in one moment. Its bound is firstPause, doubled by each failure up to
	// maxPause: a server that is away for good costs next to nothing. A connection over
	// which a call was answered begins anew with firstPause.
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
	// waitReady bounds how long a call waits for a server that is being connected
	// again.
	waitReady = 5 * time.Second
)

// An Endpoint is the connection to one server. It connects on request, and again by itself whenever
// it is faulted. It is a [gate.Upstream] of only that server's tools. Use it from several
// goroutines.
type Endpoint struct {
	cfg        config
	clientInfo []byte // how the gateway calls itself, JSON
	wg         sync.WaitGroup
	uses       drain.Counter // by a fleet
	methods    []*gate.Tool

	ownership     ownership // of its connection
	audiences     audiences // of the same server; none of one that is somebody's own
	calls         underway.Calls
	pool          *Pool         // of a whole fleet; nil bounds nothing
	levels        *wants.Levels // likewise
	subscriptions *wants.Subscriptions
	circuit       pace.Circuit
	life
	declarations
	watchers
	examining sync.Mutex
	examined  map[string]skills.Verdict // of the skills that the server lists
	skillsAt  time.Time                 // when it listed them
	memory    Memory                    // nil keeps nothing
	recalls   bool
}

// watchers are whom an endpoint tells of what happens. They must not block.
type watchers struct {
	changed func()                   // the tools or the phase are others now
	observe func(status.Declaration) // sees each listing before it is offered
	notify  func(mcp.Notice)         // called with what the server says outside of calls
}

// declarations are what was observed last.
type declarations struct {
	joining   sync.Mutex         // one listing after the other is put together
	declaring sync.Mutex         // one declaration after the other is observed
	declared  status.Declaration // the last one of all that the server lists
}

// New returns an endpoint in phase Idle. It starts nothing.
func New(server options.Endpoint) (*Endpoint, error) {
	cfg := config{server}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return newEndpoint(cfg), nil
}

// newEndpoint returns an endpoint with a configuration that was checked.
func newEndpoint(cfg config) *Endpoint {
	e := &Endpoint{
		cfg: cfg, clientInfo: mcp.MustJSON(map[string]string{"name": cmp.Or(cfg.ClientName, product.Name), "version": cmp.Or(cfg.ClientVersion, product.Version())}),
		methods: listing.NewMethods(cfg.Server, cfg.Tools, cfg.Methods),
		levels:  new(wants.Levels), subscriptions: wants.NewSubscriptions(),
		life: life{
			phase: status.Idle, tools: new(listing.Tools), closed: make(chan struct{}), turn: make(chan struct{}),
			pauses: pace.Backoff{First: firstPause, Most: maxPause},
		},
		watchers: watchers{changed: func() {}, observe: func(status.Declaration) {}, notify: func(mcp.Notice) {}},
	}
	e.ownership = shared{e}
	return e
}

// Join makes the endpoint one of a fleet. The pool bounds the processes of all endpoints, and all
// keeps their log levels. The functions are called when something happens, and may not block. Call
// Join before the endpoint is connected.
func (e *Endpoint) Join(pool *Pool, all *wants.Levels, changed func(), observe func(status.Declaration), tell func(mcp.Notice)) {
	e.pool, e.levels, e.watchers = pool, all, watchers{changed, observe, tell}
}

// Phase returns where the endpoint is in its life.
func (e *Endpoint) Phase() status.Phase {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase
}

// closedFault is the fault of a request to a closed endpoint.
func (e *Endpoint) closedFault() *fault.Fault {
	return fault.New(fault.NotConnected, e.cfg.Server, "connect", errors.New("the endpoint is closed"))
}

// credentialFault is the fault of a call to a server that cannot be connected because a credential
// is missing; nil if f has another cause.
func (e *Endpoint) credentialFault(f *fault.Fault) *fault.Fault {
	if f == nil || f.Kind != fault.Credential {
		return nil
	}
	return fault.New(fault.Credential, e.cfg.Server, "call", f.Err)
}

// A life is how far an endpoint is in its life, and the connection that it has. mu guards
// all of it.
type life struct {
	mu      sync.RWMutex
	phase   status.Phase
	attempt *attempt     // of connecting, under way
	link    *link.Link   // of phase Ready
	fault   *fault.Fault // of phase Faulted
	said    []string     // the last lines of a child's standard error, once its connection has ended
	// failures are the attempts in a row that have failed.
	failures int
	since    time.Time
	tools    *listing.Tools
	shared   *listing.Tools // those of tools that the connection itself lists; nil before the first
	closed   chan struct{}  // closed with phase Closed
	// pagesBreak says that reading pages of apps broke a connection.
	pagesBreak atomic.Bool
	turn       chan struct{}     // closed when the phase changes, and made anew
	pauses     pace.Backoff      // between attempts to connect that fail
	again      *time.Timer       // the next one; nil before the first fault
	next       time.Time         // when that begins
	wasReady   bool              // once
	recalled   *listings.Listing // what tools was made of; nil once the server itself has listed
}

// become changes the phase. The caller holds mu.
func (l *life) become(p status.Phase) {
	l.phase, l.since = after(l.phase, p), time.Now()
	close(l.turn)
	l.turn = make(chan struct{})
}

// An attempt to connect that any number of callers wait for.
type attempt struct {
	first   bool          // of this endpoint
	awaited time.Time     // since when listings wait for it; zero if none does
	done    chan struct{} // closed when the outcome is known, also to watchers of the tools
	cancel  context.CancelFunc
	limit   *startLimit
	err     error
}
