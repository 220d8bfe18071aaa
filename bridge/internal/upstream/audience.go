package upstream

import (
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/gate"
)

// Each connection to a server is for one audience. A shared connection serves all clients. The
// server cannot ask a client anything on it, because it could not say which client. A client that a
// server may ask something has a connection of its own: one for its session, with the capabilities
// that it declares. A client without sessions (MCP 2026-07-28) gets one for each call, out of those
// that its principal had before and that declare the same.
//
// A server on standard input and output was written for one client: what a call leaves there (a
// page, a folder, a thought) belongs to its client. So each owner has a process of its own. The
// owner is the connection on stdio, the MCP session over HTTP, and the principal of clients without
// sessions. A job or task of a session runs in the session's process. The process that lists is a
// spare: the first owner that cannot be asked anything gets it, and when that owner goes, the
// process is started anew. The others get processes that are started for them.

const (
	// busyTime is for how long an owner's process is kept for the owner after a call, and briefTime
	// if that was its only call.
	busyTime, briefTime = 5 * time.Minute, 2 * time.Minute
	// audienceIdle is how long such a connection is kept without a call.
	audienceIdle = 30 * time.Minute
)

// An audience is the client that a connection belongs to, or one after the other the
// clients of a principal.
type audience struct {
	session      gate.SessionKey // without ID if pooled
	caller       gate.SessionKey // whose share it is in
	who          *gate.Principal // of the first call
	pooled       bool            // has one call at a time, and any client of the principal
	stays        bool            // for a call that takes any process of its session
	capabilities gate.Doc
	endpoint     *Endpoint
	base         *Endpoint // that lists
	owner        *audiences

	// Of the audiences' mu:
	calls        int       // under way
	made         int       // so far
	used         time.Time // when the last one ended
	idle         *time.Timer
	rootsChanged bool // the client's roots have changed, and the server does not know
	// listed are its tools, if it has told that they have changed.
	listed []gate.Doc
	gone   bool // the session has ended: with the last call, such as a job's, the connection does
}

// audiences are the connections of a server that belong to clients.
type audiences struct {
	mu      sync.Mutex
	all     []*audience
	closed  bool
	closing sync.WaitGroup // of connections; Add only with mu, and not once it is closed
	spare   *audience      // has the connection that lists; nil if none has
}

// take returns the connection of the client of a call, a new one if it has none.
func (s *audiences) take(e *Endpoint, c *gate.Call) (*audience, error) {
	// A call that its client does not wait for outlives the session. The session's own connections
	// end with it, but processes end only with the last call.
	client := c.Reach()
	want := &audience{session: c.Audience(), caller: c.Caller(), who: c.Who, pooled: client.Rounds || client.Detached, capabilities: mcp.PeerCapabilities(client.Capabilities), base: e, owner: s}
	// A job or task works with what its session has left in its process. Not so a call that
	// can become a task yet (2026-07-28): its client is asked by its answer, as by no other's.
	want.stays = e.cfg.Command != "" && client.Detached && !client.MayBeTask && want.session.ID != ""
	switch {
	case want.capabilities.IsZero(): // the server can ask no client, so that calls need not be told apart
		want.pooled, want.capabilities = false, link.NoCapabilities
	case want.stays:
		want.pooled = false
	case want.pooled:
		want.session.ID = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(want)
	if i < 0 && !s.closed && e.pool != nil && e.cfg.Command != "" {
		s.mu.Unlock()
		full := !e.pool.room(s, want.caller)
		s.mu.Lock()
		if i = s.find(want); full && i < 0 {
			return nil, tooMany(e.cfg.Command != "", e.cfg.Server, e.cfg.mostAudiences())
		}
	}
	switch {
	case s.closed: // perhaps meanwhile
		return nil, e.cfg.closedFault()
	case i >= 0:
		want = s.all[i]
	case s.spare == nil && e.AlwaysOwn() && !want.asked() && !e.cfg.Personal: // it lists with a credential of its own
		want.endpoint = e
		s.spare = want
		s.all = append(s.all, want)
	default:
		var t tally
		s.tally(&t)
		goes, ok := t.room(e.cfg.mostAudiences(), want.caller)
		if !ok {
			return nil, tooMany(e.cfg.Command != "", e.cfg.Server, e.cfg.mostAudiences())
		}
		if goes != nil {
			s.drop(goes.(*audience))
		}
		want.endpoint = e.ownFor(want)
		s.all = append(s.all, want)
	}
	want.calls++
	want.made++
	return want, nil
}

// asked reports whether its client can be asked something.
func (a *audience) asked() bool { return len(a.capabilities.Raw()) > len("{}") }

// find returns the index of the connection that also serves another audience; -1 if there is none.
// A session has two processes if it began with a job: its calls are made in the last one. The
// caller holds mu.
func (s *audiences) find(want *audience) int {
	at := -1
	for i, a := range s.all {
		if (at < 0 || want.stays) && a.suits(want) {
			at = i
		}
	}
	return at
}

// suits reports whether a connection also serves another audience.
func (a *audience) suits(want *audience) bool {
	return a.session == want.session && a.pooled == want.pooled && (!a.pooled || a.calls == 0) &&
		(want.stays || a.capabilities == want.capabilities || a.capabilities.Digest() == want.capabilities.Digest())
}

// count implements [processes].
func (s *audiences) count(t *tally) (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally(t)
	return s.closed
}

// tally counts the connections. The caller holds mu.
func (s *audiences) tally(t *tally) {
	if a := s.oldest(); a != nil {
		t.oldest.older(a, a.used)
	}
	for _, a := range s.all {
		t.add(a, a.caller, a.calls > 0, a.used)
	}
}

// endUnused implements [process].
func (a *audience) endUnused() { a.owner.dropUnused(a) }

// dropUnused is drop of a connection that may have been taken meanwhile.
func (s *audiences) dropUnused(a *audience) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.calls == 0 && !s.closed && slices.Contains(s.all, a) {
		s.drop(a)
	}
}

// oldest returns the connection that can make room first, or nil: one that was not used for the
// longest time, and is not used now. One with subscriptions makes room only when it was not used
// for long, and there is no other: a client over HTTP may have gone without a word. A process with
// the state of a client is left alone for some minutes after a call. The caller holds mu.
func (s *audiences) oldest() *audience {
	var oldest, subscribed *audience
	for _, a := range s.all {
		if a.busy() {
			continue
		}
		longest := &oldest
		if a.endpoint.subscriptions.Any() {
			longest = &subscribed
		}
		if a.calls == 0 && (*longest == nil || a.used.Before((*longest).used)) {
			*longest = a
		}
	}
	if oldest == nil && subscribed != nil && time.Since(subscribed.used) >= audienceIdle {
		oldest = subscribed
	}
	return oldest
}

// busy reports whether a process was used by its owner a moment ago.
func (a *audience) busy() bool {
	if a.endpoint.cfg.Command == "" {
		return false
	}
	if a.made == 1 {
		return time.Since(a.used) < briefTime
	}
	return time.Since(a.used) < busyTime
}

// drop takes a connection out and closes it, in the background. The caller holds mu.
func (s *audiences) drop(a *audience) {
	s.all = slices.DeleteFunc(s.all, func(o *audience) bool { return o == a })
	if a.idle != nil {
		a.idle.Stop()
	}
	if a == s.spare {
		s.closing.Go(func() { a.endpoint.renew(s) })
		return
	}
	listed := a.listed != nil
	s.closing.Go(func() {
		a.endpoint.End()
		if listed { // the tools that only it had are gone
			a.base.join()
		}
	})
}

// giveBack ends a call over a connection, which is kept for a while.
func (s *audiences) giveBack(a *audience) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.calls--
	a.used = time.Now()
	if a.calls > 0 || s.closed || !slices.Contains(s.all, a) {
		return
	}
	if a.gone {
		s.drop(a)
		return
	}
	if a.idle == nil {
		a.idle = time.AfterFunc(audienceIdle, func() { s.expire(a) })
	}
}

// expire closes a connection that was not used for long. One with subscriptions is used
// as long as they last.
func (s *audiences) expire(a *audience) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := audienceIdle - time.Since(a.used)
	switch {
	case s.closed || !slices.Contains(s.all, a):
	case a.calls > 0 || a.endpoint.subscriptions.Any():
		a.idle.Reset(audienceIdle)
	case left > 0: // it was used since
		a.idle.Reset(left)
	default:
		s.drop(a)
	}
}

// end closes the connections of a session, or has the calls that outlive it do so.
func (s *audiences) end(k gate.SessionKey) {
	for _, a := range s.of(k) {
		s.mu.Lock()
		switch {
		case s.closed || !slices.Contains(s.all, a):
		case a.calls > 0 && a.endpoint.AlwaysOwn():
			a.gone = true
		default:
			s.drop(a)
		}
		s.mu.Unlock()
	}
}

// of returns the connections of a session.
func (s *audiences) of(k gate.SessionKey) (its []*audience) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		if !a.pooled && a.session == k {
			its = append(its, a)
		}
	}
	return its
}

// rootsChanged has the next call of a session tell the server that its client's roots
// have changed: the server asks for them then, and only within a call it can.
func (s *audiences) rootsChanged(k gate.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		if !a.pooled && a.session == k {
			a.rootsChanged = true
		}
	}
}

// takeRootsChanged reports whether the client's roots have changed, once.
func (s *audiences) takeRootsChanged(a *audience) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := a.rootsChanged
	a.rootsChanged = false
	return news
}

// endpoints returns all connections.
func (s *audiences) endpoints() (all []*Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		if a != s.spare { // which its own endpoint is
			all = append(all, a.endpoint)
		}
	}
	return all
}

// close closes all connections, for good, and waits.
func (s *audiences) close() {
	s.mu.Lock()
	s.closed = true
	for len(s.all) > 0 {
		if a := s.all[0]; a == s.spare { // its endpoint is being closed
			s.all, s.spare = s.all[1:], nil
		} else {
			s.drop(a)
		}
	}
	s.mu.Unlock()
	s.closing.Wait()
}

// A server may add tools while a client works with it, such as a set of tools that a call turns on.
// If the client has a connection of its own, the tools are listed only there. So the tools of a
// server are those that the shared connection lists, and then those that clients' own connections
// list in addition, for as long as these last.

// keepListed keeps the tools of an own connection, and has them listed.
func (s *audiences) keepListed(a *audience, raw []gate.Doc) {
	s.mu.Lock()
	a.listed = raw
	s.mu.Unlock()
	a.base.join()
}

// listedBeyond returns the tools of own connections whose names are none of these. Of two of one
// name that of the older connection counts.
func (s *audiences) listedBeyond(than []gate.Doc) (late []gate.Doc) {
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
			if name := t.Get("name").Text(); !known[name] && len(known) < link.MaxTools {
				known[name] = true
				late = append(late, t)
			}
		}
	}
	return late
}
