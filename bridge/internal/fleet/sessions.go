package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wants"
	"github.com/wasmgate/wasmgate/gate"
)

// Sessions are what clients have at the servers of a fleet: connections of their own, and what they
// want to be told.
type Sessions struct {
	fleet    *Fleet
	levels   wants.Levels
	onNotice atomic.Pointer[func(mcp.Notice)]
}

// OwnConnections reports whether clients have a connection each to any of the servers.
func (s *Sessions) OwnConnections() bool {
	return slices.ContainsFunc(s.fleet.snapshot(), func(m member) bool { return m.endpoint != nil && m.endpoint.AlwaysOwn() })
}

// Uses reports whether an owner has a connection of its own to a server.
func (s *Sessions) Uses(of gate.Owner) bool {
	return slices.ContainsFunc(s.fleet.snapshot(), func(m member) bool { return m.endpoint != nil && m.endpoint.UsedBy(of) })
}

// PeerChanged says that the roots of the client of a session have changed.
func (s *Sessions) PeerChanged(k gate.SessionKey) {
	for _, m := range s.fleet.snapshot() {
		if m.endpoint != nil {
			m.endpoint.RootsChanged(k)
		}
	}
}

// End closes the connections that a session has of its own, and forgets what it
// wants to be told. It does not wait.
func (s *Sessions) End(k gate.SessionKey) {
	s.levels.Set(k, 0)
	for _, m := range s.fleet.snapshot() {
		if m.endpoint != nil {
			m.endpoint.EndSession(k)
		}
	}
}

// OnNotice has notify told what servers say outside of calls. It is called once, before the
// servers are connected. notify must not block.
func (s *Sessions) OnNotice(notify func(mcp.Notice)) { s.onNotice.Store(&notify) }

func (s *Sessions) notify(n mcp.Notice) {
	if tell := s.onNotice.Load(); tell != nil {
		if n.Method == mcp.MethodUpdated {
			params, err := s.fleet.catalog.Load().more.translated(n.Server, n.Params, true)
			if err != nil {
				return // of a URI that a client has subscribed to
			}
			n.Params = params
		}
		(*tell)(n)
	}
}

// SetLevel sets the severity from which on a session wants the log messages of servers, in the
// words of MCP; "" is none. Servers that take a level get it in the background.
func (s *Sessions) SetLevel(ctx context.Context, k gate.SessionKey, level string) error {
	from := mcp.SeverityOf(level)
	if from == 0 && level != "" {
		return errors.New("no such level")
	}
	s.levels.Set(k, from)
	for _, m := range s.fleet.snapshot() {
		if m.endpoint != nil && from > 0 {
			m.endpoint.SetLevel(ctx, k, from)
		}
	}
	return nil
}

// Unsubscribe ends the subscription to a resource that a call of the given ID has made.
func (s *Sessions) Unsubscribe(ctx context.Context, call, uri string) error {
	uri = plainURI(uri)
	for _, one := range append([]string{uri}, listing.Spellings(uri)...) {
		for _, m := range s.fleet.snapshot() {
			if m.endpoint != nil && m.endpoint.Unsubscribe(ctx, call, one) {
				return nil
			}
		}
	}
	return fmt.Errorf("no server has a subscription to %q that call %s made", uri, call)
}
