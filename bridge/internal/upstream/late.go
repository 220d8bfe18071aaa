package upstream

import (
	"context"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/gate"
)

// A server may add tools while a client works with it, such as a set of tools that a call
// turns on. Where the client has a connection of its own, they are listed there alone. So
// what a server lists is what the shared connection lists, and then what own ones have
// said that they have beyond it, for as long as they last.

// relistOwn reads the tools of a client's own connection anew, and shows them to the
// endpoint that lists.
func (e *Endpoint) relistOwn(ctx context.Context, l *link) {
	raw, _, err := listed(ctx, l, "tools/list", "tools")
	if err != nil {
		e.cfg.Log.Warn("listing failed", "error", err)
		return // the old listing stays
	}
	l.declaring.Lock()
	if l.declared != nil {
		l.declared = digests(raw)
	}
	l.declaring.Unlock()
	e.audience.owner.shows(e.audience, raw)
}

// shows keeps the tools of an own connection, and has them listed.
func (s *audiences) shows(a *audience, raw []gate.Doc) {
	s.mu.Lock()
	a.listed = raw
	s.mu.Unlock()
	a.base.join()
}

// late returns the tools of own connections whose names are none of these. Of two of one
// name that of the older connection counts.
func (s *audiences) late(than []gate.Doc) (late []gate.Doc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.all, func(a *audience) bool { return a.listed != nil }) {
		return nil
	}
	known := make(map[string]bool, len(than))
	for _, t := range than {
		known[t.Get("name").Text()] = true
	}
	for _, a := range s.all {
		for _, t := range a.listed {
			if name := t.Get("name").Text(); !known[name] && len(known) < maxTools {
				known[name] = true
				late = append(late, t)
			}
		}
	}
	return late
}

// joined returns what the shared connection lists together with what own ones have beyond
// it.
func (e *Endpoint) joined(l *link, tools *listing.Tools) *listing.Tools {
	late := e.audiences.late(tools.Listed)
	if late == nil {
		return tools
	}
	all := e.toolsOf(l, slices.Concat(tools.Listed, late))
	all.Features = tools.Features
	return all
}

// join has the tools listed that there are now, after an own connection has told of its
// own, or has ended.
func (e *Endpoint) join() {
	e.joining.Lock()
	defer e.joining.Unlock()
	e.mu.Lock()
	l, shared := e.link, e.shared
	e.mu.Unlock()
	if l != nil && shared != nil { // else the listing is made anew, with these
		e.offer(l, shared, e.joined(l, shared), time.Now())
	}
}
