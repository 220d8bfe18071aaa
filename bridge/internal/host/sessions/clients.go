package sessions

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/host/shares"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Clients are the clients that have sessions, and what is kept of their streams: they know
// nothing of what the requests are about.
type Clients struct {
	hooks    Hooks
	sessions sessions

	reopening sync.Mutex
	reopened  map[[sha256.Size]byte]struct{} // by id: those that have ended since are not reopened

	detached detached
	kept     *respond.Kept                   // of the streams of all sessions
	streams  *shares.Places[gate.SessionKey] // of notifications, over HTTP and in lines
	// Drained ends when the host has drained, and with it what only waits for
	// notifications.
	Drained context.Context
	drain   context.CancelFunc
}

// Hooks are what clients need of whatever answers their requests.
type Hooks struct {
	Ended        func(*Session, *Listener) // is called when a session has ended; without a listener, its client has asked to hear nothing
	RootsChanged func(Client)              // is called when a client's roots have changed
	// Clean makes what servers say outside of calls safe.
	Clean func(server string, params gate.Doc) (gate.Doc, bool)
}

// New returns no clients yet.
func New(hooks Hooks) *Clients {
	c := &Clients{
		hooks:    hooks,
		sessions: sessions{by: make(map[string]*Session), lines: make(map[*Session]struct{})},
		kept:     respond.NewKept(),
		reopened: make(map[[sha256.Size]byte]struct{}),
	}
	c.Drained, c.drain = context.WithCancel(context.Background())
	c.Bound(maxSessions, maxAllListens)
	return c
}

// Bound bounds the sessions over HTTP, and the streams of notifications of all sessions. It is
// called before the first request.
func (c *Clients) Bound(sessions, streams int) {
	c.sessions.most, c.streams = sessions, shares.New[gate.SessionKey](streams)
}

// Open begins a session over HTTP for the parameters of an initialize that has been checked, until
// used is called.
func (c *Clients) Open(p Client, id string, params gate.Doc) Client {
	s := &Session{clients: c, began: time.Now(), ID: id}
	p.Session, p.SessionID = s, mcp.SessionName(s.ID)
	s.Client = p
	s.out = Outbox{Send: s.notify, Clean: c.hooks.Clean}
	s.Declared(params)
	c.sessions.add(s)
	return s.Client
}

// Reopen begins the session that a client had at a gateway which has ended, as Open does, but once:
// it is nil if the session has ended here. Several requests at once get the same session.
func (c *Clients) Reopen(p Client, id string, params gate.Doc) *Session {
	c.reopening.Lock()
	defer c.reopening.Unlock()
	if s := c.Find(id, p.Who); s != nil {
		return s
	}
	key := sha256.Sum256([]byte(id))
	if _, ended := c.reopened[key]; ended {
		return nil
	}
	c.reopened[key] = struct{}{}
	s := c.Open(p, id, params).Session
	s.Initialize()
	return s
}

// Connect begins the session of a client that speaks in lines.
func (c *Clients) Connect(who *gate.Principal, ch Channel) *Session {
	s := &Session{clients: c, began: time.Now(), pending: pendingRequests{mark: rand.Text()[:8] + "-"}}
	s.Client = Client{Who: who, SessionID: gate.NewID(), Session: s, Channel: ch}
	s.out = Outbox{Send: ch.Notify, Clean: c.hooks.Clean}
	c.sessions.connect(s)
	return s
}

// Find returns the session of an id that is a principal's, for a request, until used is
// called; nil if there is none.
func (c *Clients) Find(id string, who *gate.Principal) *Session { return c.sessions.find(id, who) }

// Has reports whether an owner has a session.
func (c *Clients) Has(of gate.Owner) bool {
	return slices.ContainsFunc(c.sessions.all(), func(s *Session) bool { return s.Client.Who.Owner == of })
}

// Enter counts one more stream of notifications of a client, until leave is called; it is false
// if there are too many. End is called if the stream makes room for another client's.
func (c *Clients) Enter(p Client, end func()) (leave func(), ok bool) {
	if p.Session != nil && !p.Session.enter() {
		return nil, false
	}
	left, ok := c.streams.Enter(p.Key(), end)
	switch {
	case p.Session == nil:
		return left, ok
	case !ok:
		p.Session.leave()
		return nil, false
	}
	return func() {
		left()
		p.Session.leave()
	}, true
}

// NotifyLists tells the clients that want to hear of it which lists have changed.
func (c *Clients) NotifyLists(lists []string) {
	for _, s := range c.sessions.all() {
		if s.wantsLists() {
			s.out.PutAll(lists)
		}
	}
}

// Streams returns how many requests of all sessions have a stream that is kept.
func (c *Clients) Streams() (n int) {
	for _, s := range c.sessions.all() {
		s.mu.Lock()
		n += len(s.streams)
		s.mu.Unlock()
	}
	return n
}

// Close ends all sessions.
func (c *Clients) Close() {
	for _, s := range c.sessions.all() {
		s.End()
	}
	c.sessions.stop()
}

// Abandon cancels the requests whose clients have lost their streams, from now on at once.
func (c *Clients) Abandon() { c.detached.close() }

// EndStreams ends the streams of notifications.
func (c *Clients) EndStreams() { c.drain() }

// forget has a session be found no more.
func (c *Clients) forget(s *Session) { c.sessions.forget(s) }
