package host

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// sessionIdle is how long a session over HTTP lives without a sign of its client: a
	// request, or a stream that is open.
	sessionIdle = 24 * time.Hour
	// maxSessions bounds the sessions over HTTP. Clients that come again and again without
	// ending theirs would fill the memory until those are idle for long: of the principal
	// who has the most the one that was not used for the longest time makes room for
	// another, and its client is told to begin anew.
	maxSessions = 2048
	// maxListens bounds the streams of notifications that one session has open, and
	// maxAllListens those of all: see [shares.Places].
	maxListens    = 32
	maxAllListens = 1024
)

// A session is a client of the revisions that begin with initialize. Over HTTP it has an
// id, in lines it is the connection.
type session struct {
	clients  *clients
	began    time.Time
	id       string          // "" in lines
	client   client          // who its client is; in lines set with initialize
	protocol string          // revision; "" before initialize
	pending  pendingRequests // what its client is asked
	out      outbox          // what it is told outside of its requests

	mu          sync.Mutex
	calls       map[string]context.CancelFunc // requests under way, by id
	streams     map[string]*stream            // of requests under way that have one, by name
	standalone  *stream                       // of what is said outside of requests; nil until its client wants it
	sinks       []*respond.Sink               // of its open streams
	listens     int                           // streams of notifications that are open
	initialized bool                          // it has begun
	listener    *listener
	ended       bool

	seen atomic.Int64 // when its client has given a sign of life, as of clock
	busy atomic.Int64 // requests; begun with the lock of the sessions
}

// begin notes a request under way; it is false of an id that is taken.
func (s *session) begin(id gate.Doc, cancel context.CancelFunc) bool {
	key := mcp.RequestKey(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[key] != nil {
		return false
	}
	if s.calls == nil {
		s.calls = make(map[string]context.CancelFunc, 1)
	}
	s.calls[key] = cancel
	if s.ended {
		cancel()
	}
	return true
}

// finish says that a request has been carried out.
func (s *session) finish(id gate.Doc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, mcp.RequestKey(id))
}

// receive takes a message that wants no answer: a notification, or the answer to a question
// of the host.
func (s *session) receive(p client, m message) {
	switch m.method {
	case "":
		s.pending.answer(m.doc)
	case mcp.MethodCancelled:
		s.mu.Lock()
		cancel := s.calls[mcp.RequestKey(m.params.Get("requestId"))]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case mcp.MethodRootsChanged:
		s.clients.rootsChanged(p)
	}
}

// open opens the stream of a request.
func (s *session) open(of *answer) *stream {
	st := &stream{session: s, name: rand.Text(), of: of}
	s.clients.kept.Open(s.id, st.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = make(map[string]*stream, 1)
	}
	s.streams[st.name] = st
	return st
}

// close says that a stream has had its answer.
func (s *session) close(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.name)
}

// stream returns the stream of a name: under way, or as it was kept.
func (s *session) stream(name string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch st := s.streams[name]; {
	case name == "" && s.standalone != nil:
		return s.standalone
	case st != nil:
		return st
	}
	return &stream{session: s, name: name, ended: true}
}

// standaloneStream returns the stream of what is said outside of requests, which there is from now
// on.
func (s *session) standaloneStream() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standalone == nil {
		s.standalone = &stream{session: s}
	}
	return s.standalone
}

// notify tells the client something outside of its requests. Over HTTP nobody hears it who
// has no stream for that.
func (s *session) notify(_ context.Context, method string, params gate.Doc) {
	s.mu.Lock()
	told := s.standalone
	s.mu.Unlock()
	if told != nil {
		told.write(notification(method, params))
	}
}

// reads reports whether the client may read one more stream, at k, until noMore is called.
func (s *session) reads(k *respond.Sink) (noMore func(), ok bool) {
	if !s.enter() {
		return nil, false
	}
	leave, ok := s.clients.streams.Enter(s.client.key(), k.End)
	if !ok {
		s.leave()
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sinks = append(s.sinks, k)
	if s.ended {
		k.End()
	}
	return func() {
		leave()
		s.leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sinks = slices.DeleteFunc(s.sinks, func(one *respond.Sink) bool { return one == k })
	}, true
}

// enter counts one more stream of the client, until leave is called; it is false if it has
// too many.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listens == maxListens {
		return false
	}
	s.listens++
	return true
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listens--
}

// initialize says that the client begins; it is false if it has begun already.
func (s *session) initialize() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialized {
		return false
	}
	s.initialized = true
	return true
}

func (s *session) isInitialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialized
}

// wantsLists reports whether the client is told of lists that have changed.
func (s *session) wantsLists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standalone != nil || s.id == "" && s.initialized
}

// primes reports whether the streams of a request begin with an event that says their id
// alone, so that a client whose stream breaks at once can come back (since MCP 2025-11-25).
func (s *session) primes(r *http.Request) bool {
	revision := r.Header.Get(mcp.HeaderProtocol)
	if revision == "" && r.Header.Get(mcp.HeaderSession) == "" {
		revision = s.protocol // this is initialize
	}
	return revision >= mcp.Revision
}

// end ends the session with all that it has under way.
func (s *session) end() {
	s.clients.sessions.forget(s)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	for _, cancel := range s.calls {
		cancel()
	}
	for _, k := range s.sinks {
		k.End()
	}
	l := s.listener
	s.mu.Unlock()
	if s.id != "" {
		s.clients.kept.Forget(s.id)
	}
	s.clients.ended(s, l)
}

// clock is the time that has passed, in nanoseconds, whatever the machine's clock is set to.
func clock() int64 { return int64(time.Since(began)) }

var began = time.Now()

// sessions are all sessions that there are.
type sessions struct {
	most  int          // maxSessions, but for tests
	mu    sync.RWMutex // requests only read
	by    map[string]*session
	lines map[*session]struct{}
	sweep *time.Timer // ends those that are idle; nil while there are none
}

// declared keeps what a client says of itself in initialize.
func (s *session) declared(params gate.Doc) {
	info := params.Get("clientInfo")
	s.client.name, s.client.version = info.Get("name").Text(), info.Get("version").Text()
	s.client.capabilities = askable(params.Get("capabilities"))
	s.protocol = negotiated(params.Get("protocolVersion").Text())
}

// add adds a session of a request that is under way. Those that have to make room are
// ended.
func (l *sessions) add(s *session) {
	l.mu.Lock()
	var out []*session
	for len(l.by) >= l.most {
		v := l.victim()
		delete(l.by, v.id)
		out = append(out, v)
	}
	s.busy.Store(1)
	s.seen.Store(clock())
	l.by[s.id] = s
	if l.sweep == nil {
		l.sweep = time.AfterFunc(sessionIdle, l.endIdle)
	}
	l.mu.Unlock()
	for _, v := range out {
		v.end()
	}
}

// victim returns the session that makes room for another: of the principal who has the
// most, the one that was not used for the longest time. The caller holds mu.
func (l *sessions) victim() *session {
	has := make(map[gate.Owner]int)
	for _, s := range l.by {
		has[s.client.who.Owner]++
	}
	var out *session
	for _, s := range l.by {
		if out == nil || has[s.client.who.Owner] > has[out.client.who.Owner] ||
			has[s.client.who.Owner] == has[out.client.who.Owner] && s.seen.Load() < out.seen.Load() {
			out = s
		}
	}
	return out
}

// find returns the session of an id that is a principal's, for a request, until used is
// called; nil if there is none.
func (l *sessions) find(id string, who *gate.Principal) *session {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.by[id]
	if s == nil || s.client.who.Owner != who.Owner {
		return nil
	}
	s.busy.Add(1)
	s.seen.Store(clock())
	return s
}

// used says that a request of the session has ended.
func (s *session) used() {
	s.seen.Store(clock())
	s.busy.Add(-1)
}

// forget has a session be found no more.
func (l *sessions) forget(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, s.id)
	delete(l.lines, s)
}

// endIdle ends the sessions whose clients have given no sign of life.
func (l *sessions) endIdle() {
	l.mu.Lock()
	var idle []*session
	next := sessionIdle
	for _, s := range l.by {
		if s.busy.Load() > 0 {
			continue
		}
		if left := sessionIdle - time.Duration(clock()-s.seen.Load()); left <= 0 {
			idle = append(idle, s)
		} else {
			next = min(next, left)
		}
	}
	if l.sweep = nil; len(l.by) > len(idle) {
		l.sweep = time.AfterFunc(next, l.endIdle)
	}
	l.mu.Unlock()
	for _, s := range idle {
		s.end()
	}
}

// stop has idle sessions be ended no more.
func (l *sessions) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sweep != nil {
		l.sweep.Stop()
	}
}

// connect adds a session in lines.
func (l *sessions) connect(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[s] = struct{}{}
}

// all returns the sessions that there are.
func (l *sessions) all() []*session {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*session, 0, len(l.by)+len(l.lines))
	for _, s := range l.by {
		all = append(all, s)
	}
	for s := range l.lines {
		all = append(all, s)
	}
	return all
}
