package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// A connection to a server is one for one audience. Most are shared by all clients; the
// server cannot ask on them, for it could not say whom. A client that a server may ask
// something has a connection of its own: one for its session, with what it declares to
// be capable of. A client without sessions (MCP 2026-07-28) gets one for each call, out
// of those that its principal had before and that declare the same.

const (
	// MaxAudiences bounds the connections to one server that belong to a client each. The
	// one that was idle for the longest time makes room for another.
	MaxAudiences = 32
	// audienceIdle is how long such a connection is kept without a call.
	audienceIdle = 30 * time.Minute
	// greetTime bounds how long a server gets, before the first call, to ask what it asks
	// each client at first.
	greetTime = 2 * time.Second
	// greetPause is how long it gets to ask over HTTP, where that comes on a stream of its
	// own, and not in the order in which it was sent; and answeredPause to make something
	// of the answers, such as folders that it opens.
	greetPause    = 50 * time.Millisecond
	answeredPause = 200 * time.Millisecond
)

// The values of [Config.Sessions].
const (
	// SessionsAuto gives clients that can be asked something connections of their own.
	SessionsAuto = "auto"
	// SessionsShared gives all clients one connection. The server can ask them nothing.
	SessionsShared = "shared"
)

// allCapabilities are declared on a connection that is shared, so that the server lists
// what it has for clients with any of them.
var allCapabilities = gate.MustDoc(`{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`)

// An audience is the client that a connection belongs to, or one after the other the
// clients of a principal.
type audience struct {
	session      gate.SessionKey // without ID if pooled
	pooled       bool            // has one call at a time, and any client of the principal
	capabilities gate.Doc
	endpoint     *Endpoint
	owner        *audiences

	// Of the audiences' mu:
	calls int       // under way
	used  time.Time // when the last one ended
	idle  *time.Timer
	news  bool // the client's roots have changed, and the server does not know
}

// audiences are the connections of a server that belong to clients.
type audiences struct {
	mu      sync.Mutex
	all     []*audience
	closed  bool
	closing sync.WaitGroup // of connections; Add only with mu, and not once it is closed
}

// declared returns what the client of a call can be asked; absent if that is nothing.
func declared(c *gate.Call) gate.Doc {
	if c.Peer == nil {
		return gate.Doc{}
	}
	return mcp.PeerCapabilities(c.Peer.Capabilities())
}

// declares returns the capabilities that the server is told of.
func (e *Endpoint) declares() gate.Doc {
	switch {
	case e.audience != nil:
		return e.audience.capabilities
	case e.cfg.Sessions == SessionsShared:
		return gate.MustDoc("{}")
	default:
		return allCapabilities
	}
}

// owns reports whether a call is made over a connection of its client's own. Servers of
// [mcp.Stateless] need none: they ask with their answers.
func (e *Endpoint) owns(c *gate.Call) bool {
	if e.audience != nil || e.cfg.Sessions == SessionsShared || declared(c).IsZero() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.link == nil || !e.link.modern()
}

// invokeOwn carries out a call over its client's own connection.
func (e *Endpoint) invokeOwn(ctx context.Context, p gate.Permit, c *gate.Call) (gate.Result, error) {
	a, err := e.audiences.take(e, c)
	if err != nil {
		return gate.Result{}, err
	}
	defer e.audiences.giveBack(a)
	return a.endpoint.Invoke(ctx, p)
}

// connectOwn connects a client's own endpoint, which nothing else does: the server may
// ask its client something at once, and only within a call it can.
func (e *Endpoint) connectOwn(ctx *deadline) error {
	if e.audience == nil || e.Phase() != Idle && e.FirstAttempt() == nil { // faulted: see ready
		return nil
	}
	if err := e.Connect(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &Fault{NotConnected, e.cfg.Server, "call", err}
	}
	ctx.extend()
	return nil
}

// errAudiences is the cause of a fault for want of connections.
var errAudiences = errors.New("every connection that the server may have for a client alone is in use")

// take returns the connection of the client of a call, a new one if it has none.
func (s *audiences) take(e *Endpoint, c *gate.Call) (*audience, error) {
	// A call that nobody waits for outlives the session, whose own connections end with it.
	want := &audience{session: c.Audience(), pooled: c.Rounds || c.Detached, capabilities: declared(c), owner: s}
	if want.pooled {
		want.session.ID = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, e.closedFault()
	}
	i := slices.IndexFunc(s.all, func(a *audience) bool { return a.suits(want) })
	if i >= 0 {
		want = s.all[i]
	} else {
		if len(s.all) == MaxAudiences && !s.evict() {
			return nil, &Fault{Busy, e.cfg.Server, "connect", errAudiences}
		}
		want.endpoint = e.ownFor(want)
		s.all = append(s.all, want)
	}
	want.calls++
	if want.idle != nil {
		want.idle.Stop()
	}
	return want, nil
}

// suits reports whether a connection serves who wants another.
func (a *audience) suits(want *audience) bool {
	return a.session == want.session && a.pooled == want.pooled && (!a.pooled || a.calls == 0) &&
		a.capabilities.Digest() == want.capabilities.Digest()
}

// ownFor returns an endpoint to the same server for one audience.
func (e *Endpoint) ownFor(a *audience) *Endpoint {
	own := newEndpoint(e.cfg)
	if !a.pooled {
		own.cfg.Log = e.cfg.Log.With("session", a.session.ID)
	}
	own.audience, own.levels, own.tell = a, e.levels, e.tell
	own.observe = e.observeOwn
	return own
}

// observeOwn sees what is at the other end of a client's own connection: it is to be the
// server whose tools were listed, and if it is another program, or has another key, none
// of them is approved any more.
func (e *Endpoint) observeOwn(d Declaration) {
	e.declaring.Lock()
	known := e.declared
	if known.Config != nil {
		known.TLSKey, known.Announced = d.TLSKey, time.Time{}
		e.observe(known)
	}
	e.declaring.Unlock()
	e.changed()
}

// observes has a listing seen, and keeps it for [Endpoint.observeOwn].
func (e *Endpoint) observes(d Declaration) {
	e.declaring.Lock()
	defer e.declaring.Unlock()
	e.declared = d
	e.observe(d)
}

// evict closes the connection that was not used for the longest time, and is not used
// now. One with subscriptions makes room only when it was not used for long, and there is
// no other: a client over HTTP may have gone without a word. The caller holds mu.
func (s *audiences) evict() bool {
	var oldest, subscribed *audience
	for _, a := range s.all {
		longest := &oldest
		if a.endpoint.subscriptions.any() {
			longest = &subscribed
		}
		if a.calls == 0 && (*longest == nil || a.used.Before((*longest).used)) {
			*longest = a
		}
	}
	if oldest == nil && subscribed != nil && time.Since(subscribed.used) >= audienceIdle {
		oldest = subscribed
	}
	if oldest == nil {
		return false
	}
	s.drop(oldest)
	return true
}

// drop takes a connection out and closes it, in the background. The caller holds mu.
func (s *audiences) drop(a *audience) {
	s.all = slices.DeleteFunc(s.all, func(o *audience) bool { return o == a })
	if a.idle != nil {
		a.idle.Stop()
	}
	s.closing.Go(a.endpoint.End)
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
	if a.idle == nil {
		a.idle = time.AfterFunc(audienceIdle, func() { s.expire(a) })
	} else {
		a.idle.Reset(audienceIdle)
	}
}

// expire closes a connection that was not used for long. One with subscriptions is used
// as long as they last.
func (s *audiences) expire(a *audience) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || a.calls > 0 || !slices.Contains(s.all, a):
	case a.endpoint.subscriptions.any():
		a.idle.Reset(audienceIdle)
	default:
		s.drop(a)
	}
}

// end closes the connections of a session.
func (s *audiences) end(k gate.SessionKey) {
	for _, a := range s.of(k) {
		s.mu.Lock()
		if !s.closed && slices.Contains(s.all, a) {
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
			a.news = true
		}
	}
}

// takeNews reports whether the client's roots have changed, once.
func (s *audiences) takeNews(a *audience) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := a.news
	a.news = false
	return news
}

// endpoints returns all connections.
func (s *audiences) endpoints() (all []*Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		all = append(all, a.endpoint)
	}
	return all
}

// close closes all connections, for good, and waits.
func (s *audiences) close() {
	s.mu.Lock()
	for !s.closed && len(s.all) > 0 {
		s.drop(s.all[0])
	}
	s.closed = true
	s.mu.Unlock()
	s.closing.Wait()
}

// greet gives the server of a client's own connection the time to ask what it wants to
// know of its client, and to take it in, before it is called.
func (l *link) greet(ctx context.Context) {
	if l.modern() { // it asks with its answers
		return
	}
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	before := l.peer.Asked.Count()
	if _, err := l.peer.Call(ctx, "ping", []byte("{}")); err != nil { // what it asked before it answered has come
		return
	}
	if l.overHTTP() != nil {
		l.pause(ctx, greetPause)
	}
	select {
	case <-l.peer.Asked.Settled():
	case <-l.ended:
	case <-ctx.Done():
	}
	if l.peer.Asked.Count() > before {
		l.pause(ctx, answeredPause)
	}
}

func (l *link) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.ended:
	case <-ctx.Done():
	}
}

// prepare makes a connection what a call needs it to be.
func (e *Endpoint) prepare(ctx context.Context, l *link, of *calling) {
	a := e.audience
	if a == nil {
		from := of.level
		if others := e.levels.lowest(); from == 0 || others > 0 && others < from {
			from = others
		}
		l.tune(ctx, from, true)
		return
	}
	l.tune(ctx, of.level, false)
	if a.owner.takeNews(a) && l.peer.Tell(ctx, mcp.MethodRootsChanged, "{}") == nil {
		l.greet(ctx)
	}
}

// onBehalf returns the call on whose behalf the server asks something: the one whose
// stream the request came on, or else the oldest of the client whose connection it is.
func (e *Endpoint) onBehalf(of *calling) *calling {
	switch {
	case e.audience == nil:
		return nil // clients share the connection
	case of != nil:
		return of
	default:
		return e.under.oldest()
	}
}

// RootsChanged says that the roots of the client of a session have changed.
func (e *Endpoint) RootsChanged(k gate.SessionKey) { e.audiences.rootsChanged(k) }

// EndSession closes the connections that a session has of its own. It does not wait.
func (e *Endpoint) EndSession(k gate.SessionKey) { e.audiences.end(k) }
