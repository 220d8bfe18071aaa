package host

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/host/parking"
	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/shares"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/drain"
)

// A Host is the gateway as an MCP server to clients, over stdio and HTTP, in
// the stateless protocol of revision 2026-07-28 and in the older ones with
// sessions. Use it from several goroutines.
type Host struct {
	cfg   Config
	terms atomic.Pointer[Terms]

	states    sealed.Sealer
	parking   *parking.Lot[*parked]
	taskCalls taskCalls
	listening listeners
	changes   changes

	web
	draining
}

// web is what a host keeps of its clients over HTTP.
type web struct {
	offer    gate.Groups // what they are offered
	sessions sessions
	away     away
	kept     *respond.Kept // of the streams of all sessions
}

// draining is what a host has under way, and its end.
type draining struct {
	calls drain.Counter

	// streams ends when the host has drained, and with it what only waits for
	// notifications.
	streams    context.Context
	endStreams context.CancelFunc
}

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
		listening: listeners{by: make(map[gate.SessionKey]*listener), calls: make(map[string]*outbox), open: make(map[*listening]struct{}), streams: shares.New[gate.SessionKey](maxAllListens)},
		web: web{
			sessions: sessions{most: maxSessions, by: make(map[string]*session), lines: make(map[*session]struct{})},
			kept:     respond.NewKept(),
		},
	}
	h.Change(cfg.Terms)
	h.streams, h.endStreams = context.WithCancel(context.Background())
	return h, nil
}

// info is what clients are told of the gateway.
func (h *Host) info() []byte { return h.terms.Load().info }

// serverInfo is who answers, as clients are told.
type serverInfo struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

// peerInfo is who sent a request.
type peerInfo struct {
	who           *gate.Principal
	groups        gate.Groups // that it is offered, beside the principal's
	session       string      // "" if the client has none: the principal's own
	name, version string      // as the client claims
	traceparent   string      // of the HTTP request
	stateless     bool        // revision 2026-07-28
	capabilities  gate.Doc    // by which servers may ask it; absent if there are none
	of            *session    // nil if it has none
	wire          wire        // of the request; nil of what is no request
	// listener hears what servers say outside of calls; nil unless it asks about that,
	// and has a session.
	listener *listener
}

func (p peerInfo) key() gate.SessionKey { return gate.SessionKey{Owner: p.who.Owner, ID: p.session} }

// UnderWay is how many requests of clients have begun and not ended.
func (h *Host) UnderWay() int { return h.calls.Count() }

// Close ends all sessions: nothing of the host is left to a client that has gone away.
func (h *Host) Close() {
	for _, s := range h.sessions.all() {
		s.end()
	}
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if h.sessions.sweep != nil {
		h.sessions.sweep.Stop()
	}
}

// Drain refuses new requests, ends the calls that wait for clients to call again, and
// waits for those under way, or for ctx. Then it ends the streams of notifications, so
// that no connection stays busy.
func (h *Host) Drain(ctx context.Context) error {
	h.calls.Close()
	h.away.close()
	h.parking.Close()
	defer h.endStreams()
	return h.calls.Drain(ctx)
}
