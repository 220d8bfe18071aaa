package host

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/parking"
	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/shares"
	"github.com/wasmgate/wasmgate/gate"
)

// New returns a host. It starts nothing.
func New(cfg Config) (*Host, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	states, err := sealed.New(cfg.Seal)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	h := &Host{
		cfg: cfg, states: states,
		parking:   parking.New[*parked](cfg.ParkIdle),
		listeners: listeners{by: make(map[gate.SessionKey]*listener), calls: make(map[string]*outbox), open: make(map[*listenRequest]struct{})},
		clients: clients{
			sessions: sessions{most: maxSessions, by: make(map[string]*session), lines: make(map[*session]struct{})},
			kept:     respond.NewKept(), streams: shares.New[gate.SessionKey](maxAllListens),
		},
	}
	h.Change(cfg.Terms)
	h.clients.ended, h.clients.rootsChanged = h.sessionEnded, h.rootsChanged
	h.clients.drained, h.endStreams = context.WithCancel(context.Background())
	return h, nil
}

// sessionEnded ends what there is of a session that has ended, and tells the fleet. What
// its client has asked to hear is nil if that is nothing.
func (h *Host) sessionEnded(s *session, l *listener) {
	if l != nil {
		h.forget(l)
	}
	k := s.client.key()
	h.parking.End(k)
	if h.cfg.Ended != nil {
		h.cfg.Ended(k)
	}
	if h.cfg.Lasted != nil {
		h.cfg.Lasted(time.Since(s.began))
	}
}

// rootsChanged tells the fleet that the roots of a session's client are others.
func (h *Host) rootsChanged(p client) {
	if h.cfg.PeerChanged != nil && !p.capabilities.IsZero() {
		h.cfg.PeerChanged(p.key())
	}
}

// Close ends all sessions: nothing of the host is left to a client that has gone away.
func (h *Host) Close() {
	for _, s := range h.clients.sessions.all() {
		s.end()
	}
	h.clients.sessions.stop()
}

// Drain refuses new requests, ends the calls that wait for clients to call again, and
// waits for those under way, or for ctx. Then it ends the streams of notifications, so
// that no connection stays busy.
func (h *Host) Drain(ctx context.Context) error {
	h.calls.Close()
	h.clients.detached.close()
	h.parking.Close()
	defer h.endStreams()
	return h.calls.Drain(ctx)
}
