package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A Fleet is many servers as one [gate.Upstream]. Each keeps its own faults; the
// others work on. Use it from several goroutines.
type Fleet struct {
	Sessions Sessions // what clients have at the servers

	cfg     Config
	catalog atomic.Pointer[catalog]

	mu       sync.Mutex
	roster   roster
	watchers map[int]func(status.Lists)

	turn      chan struct{} // closed with the next change, and made anew
	compiling time.Time     // since when listings wait for Config.Compiled; zero if none did

	processes upstream.Pool // those of clients
	nextID    int
	joining   map[string]*upstream.Endpoint // that are being connected, to take the place of the member of their id
	closed    bool
	mentions  mentions

	retiring sync.WaitGroup // endpoints that were replaced or removed; Add only with mu, and not once it is closed
	closing  chan struct{}  // closed with it
}

// New returns a fleet in which nothing is connected yet. Of two servers
// with one id the later wins, and the status says so.
func New(cfg Config) (*Fleet, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{cfg: cfg, watchers: make(map[int]func(status.Lists)), joining: make(map[string]*upstream.Endpoint), closing: make(chan struct{}), turn: make(chan struct{})}
	f.Sessions.fleet = f
	for _, l := range cfg.Locals {
		l.OnChange(func() { f.observe(l.Declared()); f.rebuild() })
		f.observe(l.Declared())
		if err := f.roster.check(l.ID()); err != nil {
			return nil, err
		}
		f.roster.supersede(member{id: l.ID(), upstream: l, status: l.Status})
	}
	for _, c := range cfg.Servers {
		m, err := f.newMember(c)
		if err != nil {
			return nil, err
		}
		m.remember(&f.cfg, true)
		if err := f.roster.check(m.id); err != nil {
			return nil, err
		}
		f.roster.supersede(m)
	}
	f.rebuild()
	return f, nil
}

func (f *Fleet) newMember(c options.Endpoint) (member, error) {
	given := c
	if c.Log == nil {
		c.Log = f.cfg.Log
	}
	e, err := upstream.New(c)
	if err != nil {
		return member{}, err
	}
	e.Join(&f.processes, &f.Sessions.levels, f.rebuild, f.observe, f.Sessions.notify)
	return member{id: c.Server, upstream: e, status: e.Status, endpoint: e, given: given}, nil
}

func (f *Fleet) observe(d status.Declaration) {
	if f.cfg.Pins != nil {
		f.cfg.Pins.Observe(d)
	}
}

// rebuild makes the catalog anew and notifies the watchers.
func (f *Fleet) rebuild() {
	f.mu.Lock()
	old, now := f.catalog.Load(), newCatalog(f.roster.members, &f.cfg, &f.mentions)
	f.catalog.Store(now)
	watchers := slices.Collect(maps.Values(f.watchers))
	close(f.turn)
	f.turn = make(chan struct{})
	f.mu.Unlock()
	now.logHeld(old, f.cfg.Log)
	changed := now.since(old)
	for _, w := range watchers {
		w(changed)
	}
}

// Connect connects all servers, in parallel, and returns when each is ready or
// faulted, or when ctx ends. A server's failure is no error: see [Fleet.Status].
func (f *Fleet) Connect(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, m := range f.snapshot() {
		if m.endpoint != nil {
			wg.Go(func() { _ = m.endpoint.Connect(ctx) }) // its status keeps the fault
		}
	}
	wg.Wait()
	return ctx.Err()
}

// Start begins to connect all servers and returns at once.
func (f *Fleet) Start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.roster.members {
		if m.endpoint != nil && !f.closed {
			m.endpoint.Start(ctx)
		}
	}
}

// Close ends all connections, in parallel, and waits.
func (f *Fleet) Close() error {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.closing)
	}
	members := slices.Clone(f.roster.members)
	for _, e := range f.joining {
		members = append(members, member{endpoint: e})
	}
	f.mu.Unlock()
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		if m.endpoint != nil {
			wg.Go(func() { errs[i] = m.endpoint.Close() })
		}
	}
	wg.Wait()
	f.retiring.Wait()
	return errors.Join(errs...)
}

// Status tells how each server is, in the order of configuration.
func (f *Fleet) Status() []status.Server {
	notes := f.catalog.Load().notes
	var all []status.Server
	for _, m := range f.snapshot() {
		s := m.status()
		s.Notes = append(slices.Clone(s.Notes), notes[m.id]...)
		if m.superseded > 0 {
			s.Notes = append(s.Notes, status.Note{Text: fmt.Sprintf("replaces %d earlier server(s) of this id", m.superseded)})
		}
		all = append(all, s)
	}
	return all
}

// Conflicts returns the names that more than one would offer, in the order of the
// servers that do not have them.
func (f *Fleet) Conflicts() []status.Conflict {
	c := f.catalog.Load()
	return slices.Concat(c.conflicts, c.more.prompts.conflicts, c.more.conflicts)
}

// Declared returns what each server has declared last, in the order of
// configuration and as it was written: also definitions that are quarantined. A
// server that has not been connected has declared nothing.
func (f *Fleet) Declared() []status.Declaration {
	var all []status.Declaration
	for _, m := range f.snapshot() {
		switch up := m.upstream.(type) {
		case *local.Server:
			all = append(all, up.Declared())
		case *upstream.Endpoint:
			all = append(all, up.Declared())
		}
	}
	return all
}

// Watch calls f whenever something of a server has changed, and says which lists are others
// now, until stop is called. f must not block.
func (f *Fleet) Watch(changed func(status.Lists)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nextID++
	id := f.nextID
	f.watchers[id] = changed
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, id)
	}
}

// Refresh has the fleet and its watchers look again at what is approved.
func (f *Fleet) Refresh() { f.rebuild() }

func (f *Fleet) snapshot() []member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.roster.members)
}

var _ gate.Upstream = (*Fleet)(nil)
