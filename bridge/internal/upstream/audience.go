package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/gate"
)

// A connection to a server is one for one audience. A shared one serves all clients; the
// server cannot ask on it, for it could not say whom. A client that a server may ask
// something has a connection of its own: one for its session, with what it declares to
// be capable of. A client without sessions (MCP 2026-07-28) gets one for each call, out
// of those that its principal had before and that declare the same.
//
// A server on standard input and output was written for one client: what a call leaves
// there (a page, a folder, a thought) is its client's. So each owner has a process of its
// own: on stdio the connection, over HTTP the MCP session, for clients without sessions
// the principal. A job or task of a session runs in the session's. The process that lists
// is a spare: the first owner that cannot be asked anything has it, and when it goes the
// process is started anew. The others get processes that are started for them.

const (
	// MaxAudiences bounds the connections to one server that belong to a client each. The
	// one that was idle for the longest time makes room for another.
	MaxAudiences = 32
	// maxPersonal bounds those of a server that knows its callers.
	maxPersonal = 1024
	// MaxProcesses bounds those that are processes, unless the configuration does.
	MaxProcesses = 16
	// busyTime is for how long an owner's process is nobody else's after a call, and
	// briefTime where that was its only one.
	busyTime, briefTime = 5 * time.Minute, 2 * time.Minute
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
	// SessionsAuto is SessionsOwn for a server with Command, and else gives clients that can
	// be asked something connections of their own.
	SessionsAuto = "auto"
	// SessionsOwn gives each client a connection of its own.
	SessionsOwn = "own"
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
	who          *gate.Principal // of the first call
	pooled       bool            // has one call at a time, and any client of the principal
	stays        bool            // for a call that takes any process of its session
	capabilities gate.Doc
	endpoint     *Endpoint
	base         *Endpoint // that lists
	owner        *audiences

	// Of the audiences' mu:
	calls int       // under way
	made  int       // so far
	used  time.Time // when the last one ended
	idle  *time.Timer
	news  bool // the client's roots have changed, and the server does not know
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
	spare   *audience      // who has the connection that lists; nil: nobody
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
		return noCapabilities
	default:
		return allCapabilities
	}
}

// owns reports whether a call is made over a connection of its client's own. Servers of
// [mcp.Stateless] over HTTP need none: they ask with their answers.
func (e *Endpoint) owns(c *gate.Call) bool {
	switch {
	case e.audience != nil || e.cfg.Sessions == SessionsShared:
		return false
	case e.apart():
		return true
	case declared(c).IsZero():
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.link == nil || !e.link.modern()
}

// apart reports whether the clients of the server have a connection each, whatever they
// are capable of.
func (e *Endpoint) apart() bool {
	return e.cfg.Personal || e.cfg.Sessions == SessionsOwn || e.cfg.Command != "" && e.cfg.Sessions != SessionsShared
}

// invokeOwn carries out a call over its client's own connection.
func (e *Endpoint) invokeOwn(ctx context.Context, p gate.Permit, c *gate.Call) (gate.Result, error) {
	if err := e.admitted(ctx, p, c); err != nil {
		return gate.Result{}, err
	}
	a, err := e.audiences.take(e, c)
	if err != nil {
		return gate.Result{}, err
	}
	defer e.audiences.giveBack(a)
	if a.endpoint == e { // the spare
		return e.invoke(ctx, p)
	}
	return a.endpoint.Invoke(ctx, p)
}

// connectOwn connects a client's own endpoint, which nothing else does: the server may
// ask its client something at once, and only within a call it can.
func (e *Endpoint) connectOwn(ctx *pace.Deadline) error {
	if e.audience == nil || e.Phase() != Idle && e.FirstAttempt() == nil { // faulted: see ready
		return nil
	}
	if err := e.Connect(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &Fault{NotConnected, e.cfg.Server, "call", err}
	}
	ctx.Extend()
	return nil
}

// errAudiences is the cause of a fault for want of connections.
var errAudiences = errors.New("every connection that the server may have for a client alone is in use")

// take returns the connection of the client of a call, a new one if it has none.
func (s *audiences) take(e *Endpoint, c *gate.Call) (*audience, error) {
	// A call that nobody waits for outlives the session, whose own connections end with it;
	// but processes only with the last call.
	want := &audience{session: c.Audience(), who: c.Who, pooled: c.Rounds || c.Detached, capabilities: declared(c), base: e, owner: s}
	// A job or task works with what its session has left in its process. Not so a call that
	// can become a task yet (2026-07-28): its client is asked by its answer, as by no other's.
	want.stays = e.cfg.Command != "" && c.Detached && c.Tasked == nil && want.session.ID != ""
	switch {
	case want.capabilities.IsZero(): // nobody is asked, so that calls need not be told apart
		want.pooled, want.capabilities = false, noCapabilities
	case want.stays:
		want.pooled = false
	case want.pooled:
		want.session.ID = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(want)
	if i < 0 && !s.closed && e.cfg.Pool != nil && e.cfg.Command != "" {
		s.mu.Unlock()
		full := !e.cfg.Pool.room(s)
		s.mu.Lock()
		if i = s.find(want); full && i < 0 {
			return nil, e.tooMany()
		}
	}
	switch {
	case s.closed: // perhaps meanwhile
		return nil, e.closedFault()
	case i >= 0:
		want = s.all[i]
	case s.spare == nil && e.apart() && !want.asked() && !e.cfg.Personal: // it lists with a credential of its own
		want.endpoint = e
		s.spare = want
		s.all = append(s.all, want)
	default:
		if len(s.all) >= e.mostAudiences() && !s.evict() {
			return nil, e.tooMany()
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

// find returns where the connection is that serves who wants another; -1 if there is none.
// A session has two processes if it began with a job: its calls are made in the last one.
// The caller holds mu.
func (s *audiences) find(want *audience) int {
	at := -1
	for i, a := range s.all {
		if (at < 0 || want.stays) && a.suits(want) {
			at = i
		}
	}
	return at
}

// suits reports whether a connection serves who wants another.
func (a *audience) suits(want *audience) bool {
	return a.session == want.session && a.pooled == want.pooled && (!a.pooled || a.calls == 0) &&
		(want.stays || a.capabilities == want.capabilities || a.capabilities.Digest() == want.capabilities.Digest())
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

// mostAudiences is how many connections may belong to a client each.
func (e *Endpoint) mostAudiences() int {
	switch {
	case e.cfg.Personal:
		return maxPersonal
	case e.cfg.Command == "":
		return MaxAudiences
	case e.cfg.Processes > 0:
		return e.cfg.Processes
	}
	return MaxProcesses
}

// tooMany is the fault of a call for which there is no connection.
func (e *Endpoint) tooMany() *Fault {
	err := errAudiences
	if e.cfg.Command != "" {
		err = &processesError{e.mostAudiences()}
	}
	return &Fault{Busy, e.cfg.Server, "connect", err}
}

// evict closes the connection that was not used for the longest time, and is not used
// now. One with subscriptions makes room only when it was not used for long, and there is
// no other: a client over HTTP may have gone without a word. A process with the state of a
// client is left alone for some minutes after a call. The caller holds mu.
func (s *audiences) evict() bool {
	oldest := s.oldest()
	if oldest == nil {
		return false
	}
	s.drop(oldest)
	return true
}

// oldest returns the connection that can make room first, or nil. The caller holds mu.
func (s *audiences) oldest() *audience {
	var oldest, subscribed *audience
	for _, a := range s.all {
		if a.busy() {
			continue
		}
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
	return oldest
}

// DefaultPool is how many processes may belong to a client each, of all servers together.
const DefaultPool = 64

// A Pool bounds the processes that belong to a client each, of all servers together. The
// zero Pool bounds them to [DefaultPool].
type Pool struct {
	Most int // 0: DefaultPool

	mu  sync.Mutex
	all map[*audiences]bool
}

// room reports whether there is room for one process more, and ends the one that was not
// used for the longest time if that makes it.
func (p *Pool) room(s *audiences) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[*audiences]bool{}
	}
	p.all[s] = true
	most := p.Most
	if most == 0 {
		most = DefaultPool
	}
	var oldest *audience
	var used time.Time
	n := 0
	for s := range p.all {
		s.mu.Lock()
		n += len(s.all)
		if a := s.oldest(); a != nil && (oldest == nil || a.used.Before(used)) {
			oldest, used = a, a.used
		}
		if s.closed {
			delete(p.all, s)
		}
		s.mu.Unlock()
	}
	if n < most {
		return true
	}
	if oldest == nil {
		return false
	}
	o := oldest.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	if oldest.calls == 0 && !o.closed && slices.Contains(o.all, oldest) {
		o.drop(oldest)
	}
	return true
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
		if listed { // what it alone had is gone
			a.base.join()
		}
	})
}

// renew starts the process that lists anew, for the next owner: what the last one has left
// there is nobody else's.
func (e *Endpoint) renew(s *audiences) {
	e.mu.Lock()
	l := e.link
	e.mu.Unlock()
	if l != nil {
		l.peer.Fail(errRenewed)
		<-l.ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = nil
}

// errRenewed is why a connection ended whose owner has gone.
var errRenewed = errors.New("the client whose process it was has gone")

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
	case a.calls > 0 || a.endpoint.subscriptions.any():
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
		case a.calls > 0 && a.endpoint.apart():
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
	if !of.call.Detached && a.owner.takeNews(a) && l.peer.Tell(ctx, mcp.MethodRootsChanged, "{}") == nil {
		l.greet(ctx)
	}
}

// onBehalf returns the call on whose behalf the server asks something: the one whose
// stream the request came on, or else the foremost of the client whose connection it is. A
// server on stdio does not say for which of several it asks, and a client that waits for its
// call answers, which it could not if a job or task beside it were asked.
func (e *Endpoint) onBehalf(of *calling) *calling {
	switch {
	case e.audience == nil:
		return nil // clients share the connection
	case of != nil:
		return of
	default:
		return e.under.foremost()
	}
}

// asker returns the call on whose behalf the server asks something: that of the task which
// it names, and which the connection must have; else see onBehalf.
func (e *Endpoint) asker(of *calling, params gate.Doc) *calling {
	related := params.Get("_meta").Get(mcp.MetaRelatedTask)
	if related.IsZero() || e.audience == nil {
		return e.onBehalf(of)
	}
	return e.under.byTask(related.Get("taskId").Text())
}

// RootsChanged says that the roots of the client of a session have changed.
func (e *Endpoint) RootsChanged(k gate.SessionKey) { e.audiences.rootsChanged(k) }

// EndSession closes the connections that a session has of its own. It does not wait.
func (e *Endpoint) EndSession(k gate.SessionKey) { e.audiences.end(k) }
