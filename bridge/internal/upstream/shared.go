package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// shared is the ownership of a connection that clients share. It lists the tools for all of them.
// The server can ask nothing on it, because it could not say which client it asks.
type shared struct{ of *caller }

var _ ownership = shared{}

// allCapabilities are declared on a connection that is shared, so that the server lists
// what it has for clients with any of them.
var allCapabilities = gate.MustDoc(`{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`)

func (s shared) capabilities() gate.Doc {
	if s.of.cfg.Sessions == options.SessionsShared {
		return link.NoCapabilities
	}
	return allCapabilities
}

func (shared) reports() bool { return true }

func (s shared) list(ctx context.Context, l *link.Link) (*listing.Tools, error) {
	return s.of.listed.reader.list(ctx, l)
}

func (shared) opened(context.Context, *link.Link) {}

func (s shared) relist(ctx context.Context, l *link.Link, announced time.Time) {
	tools, err := s.of.listed.reader.list(ctx, l)
	if err != nil {
		s.of.cfg.Log.Warn("listing failed", "error", err)
		return // the old listing stays
	}
	s.of.listed.joining.Lock()
	defer s.of.listed.joining.Unlock()
	s.of.listed.offer(l, tools, s.of.listed.joined(l, tools), announced)
}

func (shared) listsFeatures() bool { return true }

// owns is false for servers that ask by their answers, as those of [mcp.Stateless] do: their
// clients need no connection of their own.
func (s shared) owns(c *gate.Call) bool {
	of := s.of
	switch {
	case of.cfg.Sessions == options.SessionsShared:
		return false
	case of.cfg.alwaysOwn():
		return true
	case mcp.PeerCapabilities(c.Reach().Capabilities).IsZero():
		return false
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.link == nil || !of.link.Dialect.AsksByAnswers()
}

func (shared) connect(context.Context, *underway.Call) error { return nil }

func (shared) reconnects() bool { return true }

func (s shared) approves(_ context.Context, _ *link.Link, t *gate.Tool, other bool) error {
	if !other {
		return nil
	}
	return s.of.listed.Offers(t)
}

func (s shared) prepare(ctx context.Context, l *link.Link, of *underway.Call) {
	from := of.Level
	if others := s.of.levels.Lowest(); from == 0 || others > 0 && others < from {
		from = others
	}
	l.Dialect.Tune(ctx, from, true)
}

// caller is that of the call, but where each has a connection with a credential of their own:
// this one is the gateway's then.
func (s shared) caller(p gate.Permit) (*gate.Principal, gate.Permit) {
	if call, _, ok := p.Open(); ok && !s.of.cfg.Personal {
		return call.Who, p
	}
	return nil, p
}

func (shared) asker(*underway.Call, gate.Doc) *underway.Call { return nil }

// logger is the call that alone is under way, if a stream would have told another.
func (s shared) logger(l *link.Link) *underway.Call {
	if l.OverHTTP() != nil {
		return nil
	}
	return s.of.calls.Only()
}

// logged drops the message: it could tell one client of another.
func (shared) logged(mcp.Severity, gate.Doc) {}
