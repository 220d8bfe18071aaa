package dispatch

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/parking"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
)

// New returns a dispatcher. It starts nothing, and needs [Dispatcher.Change] before its first
// request.
func New(cfg Config) (*Dispatcher, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	states, err := sealed.New(cfg.Seal)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	d := &Dispatcher{backend: &backend{cfg: cfg}, sessionIDs: sessionIDs{states, time.Now(), rand.Text()}}
	d.clients = sessions.New(sessions.Hooks{Ended: d.sessionEnded, RootsChanged: d.rootsChanged, Clean: cfg.Clean})
	d.carrier = &carrier{backend: d.backend, place: &d.Place, states: states, parking: parking.New[*parked](cfg.ParkIdle)}
	d.tasks = &tasks{d.carrier}
	d.hearing = newHearing(d.backend, d.clients, d.tasks)
	d.pages, d.skills = appPages{d.backend}, skillSet{d.carrier}
	d.tools = tools{d.carrier, d.pages, d.tasks}
	d.features = features{d.carrier, d.pages, d.skills}
	d.lists = lists{d.backend, d.pages}
	d.methods = d.table()
	return d, nil
}

// sessionEnded ends what there is of a session that has ended, and tells the fleet. What
// its client has asked to hear is nil if that is nothing.
func (d *Dispatcher) sessionEnded(s *sessions.Session, l *sessions.Listener) {
	if l != nil {
		d.forget(l)
	}
	k := s.Client.Key()
	d.parking.End(k)
	if d.cfg.Ended != nil {
		d.cfg.Ended(k)
	}
	if d.cfg.Lasted != nil {
		d.cfg.Lasted(s.Lasted())
	}
}

// rootsChanged notifies the fleet that the roots of a session's client have changed.
func (d *Dispatcher) rootsChanged(p sessions.Client) {
	if d.cfg.PeerChanged != nil && !p.Capabilities.IsZero() {
		d.cfg.PeerChanged(p.Key())
	}
}

// Close ends all sessions: nothing is left to a client that has gone away.
func (d *Dispatcher) Close() { d.clients.Close() }

// Refuse refuses new requests from now on, except pings.
func (d *Dispatcher) Refuse() { d.calls.Close() }

// Drain refuses new requests, ends the calls that wait for clients to call again, and
// waits for those under way, or for ctx. Then it ends the streams of notifications, so
// that no connection stays busy.
func (d *Dispatcher) Drain(ctx context.Context) error {
	d.Refuse()
	d.clients.Abandon()
	d.parking.Close()
	defer d.clients.EndStreams()
	return d.calls.Drain(ctx)
}
