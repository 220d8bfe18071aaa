package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/listings"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
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

// A life is how far an endpoint is in its life, and the connection that it has. The other parts
// of an endpoint share it.
type life struct {
	cfg *config
	watchers
	circuit pace.Circuit
	wg      sync.WaitGroup // of goroutines, for whose end Close waits

	mu      sync.RWMutex // guards what follows
	phase   status.Phase
	attempt *attempt     // of connecting, under way
	link    *link.Link   // of phase Ready
	fault   *fault.Fault // of phase Faulted
	said    []string     // the last lines of a child's standard error, once its connection has ended
	// failures are the attempts in a row that have failed.
	failures int
	since    time.Time
	tools    *listing.Tools
	shared   *listing.Tools    // those of tools that the connection itself lists; nil before the first
	closed   chan struct{}     // closed with phase Closed
	turn     chan struct{}     // closed when the phase changes, and made anew
	pauses   pace.Backoff      // between attempts to connect that fail
	again    *time.Timer       // the next one; nil before the first fault
	next     time.Time         // when that begins
	wasReady bool              // once
	recalled *listings.Listing // what tools was made of; nil once the server itself has listed
}

// watchers are whom an endpoint tells of what happens. They must not block.
type watchers struct {
	changed func()                   // the tools or the phase are others now
	observe func(status.Declaration) // sees each listing before it is offered
	notify  func(mcp.Notice)         // called with what the server says outside of calls
}

func newLife(cfg *config) *life {
	return &life{
		cfg: cfg, phase: status.Idle, tools: new(listing.Tools), closed: make(chan struct{}), turn: make(chan struct{}),
		pauses:   pace.Backoff{First: firstPause, Most: maxPause},
		watchers: watchers{changed: func() {}, observe: func(status.Declaration) {}, notify: func(mcp.Notice) {}},
	}
}

// become changes the phase. The caller holds mu.
func (li *life) become(p status.Phase) {
	li.phase, li.since = after(li.phase, p), time.Now()
	close(li.turn)
	li.turn = make(chan struct{})
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

// Phase returns where the endpoint is in its life.
func (li *life) Phase() status.Phase {
	li.mu.Lock()
	defer li.mu.Unlock()
	return li.phase
}

// connection returns the connection that there is; nil if there is none.
func (li *life) connection() *link.Link {
	li.mu.RLock()
	defer li.mu.RUnlock()
	return li.link
}

// starts reports whether the first attempt to connect is under way. The caller holds mu, or
// shares it.
func (li *life) starts() bool {
	if li.attempt == nil || !li.attempt.first {
		return false
	}
	select {
	case <-li.attempt.done:
		return false
	default:
		return true
	}
}

// usable returns the connection, nil if none can be used. The caller holds mu, or shares it.
func (li *life) usable() *link.Link {
	if li.phase == status.Ready && li.link.Peer.Why() == nil {
		return li.link
	}
	return nil
}

// mayConnect reports whether there may be a connection soon: one that is Ready is about to be
// faulted. The caller holds mu.
func (li *life) mayConnect() bool {
	return li.cfg.Broken == "" && slices.Contains([]status.Phase{status.Ready, status.Connecting, status.Faulted}, li.phase)
}

// notReady is the fault of a call that finds no connection. The caller holds mu.
func (li *life) notReady() *fault.Fault {
	if f := li.cfg.credentialFault(li.fault); f != nil {
		return f
	}
	return fault.New(fault.NotConnected, li.cfg.Server, "call", li.notConnected())
}

// notConnected returns why there is no connection, and what is done about it. The caller holds mu.
func (li *life) notConnected() error {
	words, now := "the server is "+string(li.phase), time.Now()
	switch {
	case li.cfg.Broken != "":
		words = "the server cannot be used as it is configured"
	case li.phase == status.Connecting:
		what := "being connected"
		if li.cfg.Command != "" {
			what = "starting"
		}
		if li.wasReady {
			what += " again"
		}
		words = fmt.Sprintf("the server is %s (for %s so far); call again in %s", what, seconds(now.Sub(li.since)), waitReady)
	case li.phase == status.Faulted && li.again != nil:
		words = fmt.Sprintf("the server is not connected, and is tried again in %s; call again then", seconds(li.next.Sub(now)))
	}
	return &fault.NotConnectedError{Words: words, Fault: li.fault}
}

// seconds rounds up, to a second at least.
func seconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// circuitFault is the fault of a call that an open circuit does not let through.
func (li *life) circuitFault(until time.Time) *fault.Fault {
	li.mu.Lock()
	defer li.mu.Unlock()
	open := &pace.OpenError{Until: until}
	if li.fault != nil {
		open.Why = li.fault
	}
	return fault.New(fault.NotConnected, li.cfg.Server, "call", open)
}

// Unready returns the fault of a call while the server has not been ready yet; nil once it was.
func (li *life) Unready() *fault.Fault {
	li.mu.Lock()
	defer li.mu.Unlock()
	if li.wasReady {
		return nil
	}
	if f := li.cfg.credentialFault(li.fault); f != nil {
		return f
	}
	return fault.New(fault.NotConnected, li.cfg.Server, "lookup", li.notConnected())
}

// Unlisted returns the end of the first attempt to connect while it is under way and nothing
// is known of what the server lists, and since when listings wait for it; nil at other times.
// waits says that one does.
func (li *life) Unlisted(waits bool) (over <-chan struct{}, since time.Time) {
	li.mu.Lock()
	defer li.mu.Unlock()
	if li.recalled != nil || !li.starts() {
		return nil, time.Time{}
	}
	if waits && li.attempt.awaited.IsZero() {
		li.attempt.awaited = time.Now()
	}
	return li.attempt.done, li.attempt.awaited
}

// Started waits, within ctx, for the first attempt to connect if it is under way.
func (li *life) Started(ctx context.Context) {
	li.mu.RLock()
	starts, a := li.starts(), li.attempt
	li.mu.RUnlock()
	if !starts {
		return
	}
	select {
	case <-a.done:
	case <-ctx.Done():
	}
}
