// Package pins shows the definitions of servers, compares and approves them, and takes up what the lockfile
// holds when it changes.
package pins

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// The operations of pins.
var (
	Show    = operation.New[Request, *List]("pins")
	Compare = operation.New[Request, *lock.Review]("pin-review")
	Approve = operation.New[Request, []lock.Pin]("pin-approve")
	Reload  = operation.New[Request, operation.None]("pin-reload")
)

// A Request names what is shown and compared, or the pins that are approved, and who approves.
type Request struct {
	Selector string     `json:"selector,omitempty"`
	Pins     []lock.Pin `json:"pins,omitempty"`
	By       string     `json:"by,omitempty"`
}

// Gateway is the one whose servers are pinned.
type Gateway interface {
	Fleet() gateway.Fleet
	// Pins returns what is held against what servers declare, or why nothing is.
	Pins() (gate.Pins, error)
	// ReloadPins reads the lockfile; by is who has approved what is new in it.
	ReloadPins(by string) error
	// FollowPins takes over what other gateways have approved in documents.
	FollowPins(by string, documents []string) error
}

// Pins are those of one gateway. Its fields are set before anything is asked.
type Pins struct {
	Gateway Gateway
	Config  func() *config.Config // in use
	Shared  bool                  // with other gateways, rather than in the lockfile
	// Look returns what a scan finds in definitions.
	Look func() (lock.Look, error)
	Log  *slog.Logger

	changing sync.Mutex // held over a change and what follows from it, so that the newest comes last
	failed   atomic.Pointer[error]
}

// Operations adds those of pins to a table.
func (p *Pins) Operations(t operation.Table) {
	Show.Add(t, func(ctx context.Context, r Request) (*List, error) { return p.List(ctx, r.Selector) })
	Compare.Add(t, func(ctx context.Context, r Request) (*lock.Review, error) { return p.Review(ctx, r.Selector) })
	Approve.Add(t, func(ctx context.Context, r Request) ([]lock.Pin, error) { return p.Approve(ctx, r.Pins, r.By) })
	Reload.Add(t, func(_ context.Context, r Request) (operation.None, error) { return operation.None{}, p.Reload(r.By) })
}

// A List tells what is pinned, trusted and quarantined.
type List struct {
	Mode     string       `json:"mode"`
	Lockfile string       `json:"lockfile"`
	Pins     []lock.Entry `json:"pins"`
}

// Count returns how many definitions are quarantined.
func (p *List) Count() (n int) {
	for _, e := range p.Pins {
		if e.State.Quarantined() {
			n++
		}
	}
	return n
}

// List returns what is known of the things that a selector names: a tool or a
// server; "" is everything.
func (p *Pins) List(ctx context.Context, selector string) (*List, error) {
	pins, err := p.settled(ctx)
	if err != nil {
		return nil, err
	}
	some, err := lock.Select(pins.Entries(), selector)
	return &List{p.Config().Pins.Mode, p.Config().Pins.Lockfile, slices.Concat([]lock.Entry{}, some)}, err
}

// Review returns how what a selector names differs from what was approved, with what a
// scan finds in it, and the digests that its approval adds. It approves nothing.
func (p *Pins) Review(ctx context.Context, selector string) (*lock.Review, error) {
	pins, err := p.settled(ctx)
	if err != nil {
		return nil, err
	}
	look, err := p.Look()
	if err != nil {
		return nil, err
	}
	review, err := pins.Review(selector, look)
	return &review, err
}

// held returns the gateway's pins as package lock, which makes them, knows them.
func (p *Pins) held() (*lock.Pins, error) {
	pins, err := p.Gateway.Pins()
	if err != nil {
		return nil, err
	}
	return pins.(*lock.Pins), nil
}

// startedWait bounds how long a question about pins waits for servers that start.
const startedWait = 10 * time.Second

// settled returns the pins once the servers have had time to declare what they
// have.
func (p *Pins) settled(ctx context.Context) (*lock.Pins, error) {
	pins, err := p.held()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startedWait)
	defer cancel()
	p.Gateway.Fleet().Started(ctx)
	return pins, nil
}

// Reload puts what the lockfile holds now in place, rather than within a second. By is who has
// approved what is new in it.
func (p *Pins) Reload(by string) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	return p.take(by)
}

// take is Reload for callers that hold changing.
func (p *Pins) take(by string) error {
	err := p.Gateway.ReloadPins(by)
	p.failed.Store(&err)
	if err != nil {
		p.Log.Error("lockfile refused; the last good one is still in use", "error", err)
		return fmt.Errorf("%w; the last good lockfile stays in use", err)
	}
	return nil
}

// Problem says why the last good lockfile is in use, and not what the file holds now; nil if it is.
func (p *Pins) Problem() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Watch returns what loads the lockfile anew if it has changed.
func (p *Pins) Watch() func() {
	state := func() string { return p.Config().Pins.Lockfile + " " + watch.State(p.Config().Pins.Lockfile) }
	last := state()
	return func() {
		if now := state(); now != last {
			last = now
			_ = p.Reload("") // it logs what is wrong
		}
	}
}

// Approve writes approved definitions into the lockfile, or where gateways share them, and returns
// those that were not there. By is who approves.
func (p *Pins) Approve(ctx context.Context, pins []lock.Pin, by string) ([]lock.Pin, error) {
	p.changing.Lock() // so that no call follows before by is known
	defer p.changing.Unlock()
	approve := func(pins []lock.Pin) ([]lock.Pin, error) { return lock.Approve(p.Config().Pins.Lockfile, pins) }
	if p.Shared {
		of, err := p.held()
		if err != nil {
			return nil, err
		}
		approve = func(pins []lock.Pin) ([]lock.Pin, error) { return of.Approve(ctx, pins) }
	}
	added, err := approve(pins)
	if err != nil {
		return nil, err
	}
	return added, p.take(by)
}

// Keep approves definitions for the operator of a gateway: in the lockfile, or in the database that gateways share. It
// returns those that were not approved there, and where that is.
func Keep(ctx context.Context, cfg *config.Config, g operation.Gateway, approval []lock.Pin) (added []lock.Pin, where string, err error) {
	by := gate.Local().ID
	if cfg.Store.On() {
		added, err = Approve.Ask(ctx, g, Request{Pins: approval, By: by})
		return added, "the database", err
	}
	where = cfg.Pins.Lockfile
	if added, err = lock.Approve(where, approval); err != nil {
		return nil, where, err
	}
	if _, err := Reload.Ask(ctx, g, Request{By: by}); err != nil {
		return nil, where, fmt.Errorf("%s has it, but the gateway does not load it: %w", where, err)
	}
	return added, where, nil
}

// Follow takes over what other gateways have seen and approved, and tries again what could not be kept.
func (p *Pins) Follow(by string, documents []string) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	return p.Gateway.FollowPins(by, documents)
}

// maxQuarantineNames is how many names a note holds.
const maxQuarantineNames = 10

// Describe says of each server which of its definitions are quarantined, and what to do about it.
// Tools that are not callable do not count as the server's.
func (p *Pins) Describe(servers []status.Server) []status.Server {
	pins, err := p.held()
	if err != nil {
		return servers
	}
	quarantined := make(map[string][]lock.Entry)
	for _, e := range pins.Entries() {
		if e.State.Quarantined() {
			quarantined[e.Server] = append(quarantined[e.Server], e)
		}
	}
	callable := make(map[string]int)
	for _, t := range p.Gateway.Fleet().KnownFeatures(gate.FeatureTool) {
		if pins.Check(t) == nil {
			callable[t.Name.Server]++
		}
	}
	for i := range servers {
		s := &servers[i]
		s.Tools = min(s.Tools, callable[s.Server])
		for _, n := range pins.Notes(s.Server) {
			s.Notes = append(s.Notes, status.Note{Text: n})
		}
		if some := quarantined[s.Server]; len(some) > 0 {
			for _, e := range some {
				s.Quarantined = append(s.Quarantined, e.Label)
			}
			s.Notes = append(s.Notes, status.Note{Quarantined: true, Text: quarantineNote(s.Server, some, pins.Faulted(s.Server))})
		}
	}
	return servers
}

func quarantineNote(server string, some []lock.Entry, fault error) string {
	var names []string
	for _, e := range some[:min(len(some), maxQuarantineNames)] {
		what := "new"
		if e.State == lock.StateChanged {
			what = "changed"
		}
		names = append(names, lock.Visible(e.Label)+" ("+what+")")
	}
	text := fmt.Sprintf("%d not approved: %s", len(some), strings.Join(names, ", "))
	if more := len(some) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if fault != nil {
		return text + "; " + fault.Error()
	}
	return fmt.Sprintf("%s: look first with `wasmgate pin diff %s`", text, server)
}
