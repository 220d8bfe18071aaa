package sessions

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/apps"
)

const (
	// sessionIdle is how long a session over HTTP lives without a sign of its client: a
	// request, or a stream that is open.
	sessionIdle = 24 * time.Hour
	// maxSessions bounds the sessions over HTTP. Clients that come again and again without ending
	// theirs would fill the memory until those have been idle for long. At the bound, the principal
	// with the most sessions loses the one that was not used for the longest time, and that
	// session's client gets an answer to begin anew.
	maxSessions = 2048
	// maxListens bounds the streams of notifications that one session has open, and
	// maxAllListens those of all: see [shares.Places].
	maxListens    = 32
	maxAllListens = 1024
)

// A Client is the sender of a request.
type Client struct {
	Who           *gate.Principal
	Revocations   uint32      // known before Who was found out: see [gate.Call]
	Groups        gate.Groups // narrow what it is offered, as the principal's do
	SessionID     string      // "" if the client has none: the principal's own
	Name, Version string      // as the client claims
	Traceparent   string      // of the HTTP request
	Stateless     bool        // revision 2026-07-28
	Capabilities  gate.Doc    // by which servers may ask it; absent if there are none
	Renders       bool        // shows pages of apps
	Session       *Session    // nil if it has none
	Channel       Channel     // of the request; nil of what is no request
	// Listener hears what servers say outside of calls; nil unless it asks about that,
	// and has a session.
	Listener *Listener
}

// Key names the session of the gate that the client has.
func (p Client) Key() gate.SessionKey { return gate.SessionKey{Owner: p.Who.Owner, ID: p.SessionID} }

// A Session is a client of the revisions that begin with initialize. Over HTTP it has an
// id, in lines it is the connection.
type Session struct {
	clients  *Clients
	began    time.Time
	ID       string          // "" in lines
	Client   Client          // who its client is; in lines set with initialize
	Protocol string          // revision; "" before initialize
	pending  pendingRequests // what its client is asked
	out      Outbox          // notifications outside of its requests

	mu          sync.Mutex
	calls       map[string]context.CancelFunc // requests under way, by id
	streams     map[string]*stream            // of requests under way that have one, by name
	standalone  *stream                       // of what is said outside of requests; nil until its client wants it
	sinks       []*respond.Sink               // of its open streams
	listens     int                           // streams of notifications that are open
	initialized bool                          // it has begun
	named       bool                          // it is known what its client calls itself
	name        string                        // that, last
	listener    *Listener
	ended       bool

	resumes atomic.Bool // its client has come back for a stream

	seen atomic.Int64 // when its client has given a sign of life, as of clock
	busy atomic.Int64 // requests; begun with the lock of the sessions
}

// Begin notes a request under way; it is false of an id that is taken.
func (s *Session) Begin(id gate.Doc, cancel context.CancelFunc) bool {
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

// Finish says that a request has been carried out.
func (s *Session) Finish(id gate.Doc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, mcp.RequestKey(id))
}

// Receive takes a message that wants no answer: a notification, or the answer to a question
// of the host.
func (s *Session) Receive(p Client, m message.Message) {
	switch m.Method {
	case "":
		s.pending.answer(m.Doc)
	case mcp.MethodCancelled:
		s.mu.Lock()
		cancel := s.calls[mcp.RequestKey(m.Params.Get("requestId"))]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case mcp.MethodRootsChanged:
		s.clients.hooks.RootsChanged(p)
	}
}

// Ask sends a request of the host to the client, and waits for its result.
func (s *Session) Ask(ctx context.Context, send func([]byte), method string, params gate.Doc) (gate.Doc, error) {
	return s.pending.request(ctx, send, method, params)
}

// open opens the stream of a request.
func (s *Session) open(of *Answer) *stream {
	st := &stream{session: s, name: streamName(of.id), of: of}
	s.clients.kept.Open(s.ID, st.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = make(map[string]*stream, 1)
	}
	s.streams[st.name] = st
	return st
}

// close says that a stream has had its answer.
func (s *Session) close(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.name)
}

// stream returns the stream of a name: under way, or as it was kept.
func (s *Session) stream(name string) *stream {
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
func (s *Session) standaloneStream() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standalone == nil {
		s.standalone = &stream{session: s}
	}
	return s.standalone
}

// notify sends the client a notification outside of its requests. Over HTTP it is dropped if the
// client has no stream for that.
func (s *Session) notify(_ context.Context, method string, params gate.Doc) {
	s.mu.Lock()
	told := s.standalone
	s.mu.Unlock()
	if told != nil {
		told.write(message.Notification(method, params))
	}
}

// reads reports whether the client may read one more stream, at k, until noMore is called.
func (s *Session) reads(k *respond.Sink) (noMore func(), ok bool) {
	leave, ok := s.clients.Enter(s.Client, k.End)
	if !ok {
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
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sinks = slices.DeleteFunc(s.sinks, func(one *respond.Sink) bool { return one == k })
	}, true
}

// present reports whether the client has a stream open, or has ever come back for one.
func (s *Session) present() bool {
	s.mu.Lock()
	open, streams := s.resumes.Load() || len(s.sinks) > 0, slices.Collect(maps.Values(s.streams))
	s.mu.Unlock()
	return open || slices.ContainsFunc(streams, (*stream).isRead)
}

// enter counts one more stream of the client, until leave is called; it is false if it has
// too many.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listens == maxListens {
		return false
	}
	s.listens++
	return true
}

func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listens--
}

// Initialize says that the client begins; it is false if it has begun already.
func (s *Session) Initialize() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialized {
		return false
	}
	s.initialized = true
	return true
}

// UsedBy notes the name that the client gives itself; it is false if the name has not changed.
func (s *Session) UsedBy(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named && s.name == name {
		return false
	}
	s.named, s.name = true, name
	return true
}

func (s *Session) IsInitialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialized
}

// wantsLists reports whether the client wants to hear of lists that have changed.
func (s *Session) wantsLists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standalone != nil || s.ID == "" && s.initialized
}

// primes reports whether the streams of a request begin with an event that says their id
// alone, so that a client whose stream breaks at once can come back (since MCP 2025-11-25).
func (s *Session) primes(r *http.Request) bool {
	revision := r.Header.Get(mcp.HeaderProtocol)
	if revision == "" && r.Header.Get(mcp.HeaderSession) == "" {
		revision = s.Protocol // this is initialize
	}
	return revision >= mcp.Revision
}

// End ends the session with all that it has under way.
func (s *Session) End() {
	s.clients.forget(s)
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
	if s.ID != "" {
		s.clients.kept.Forget(s.ID)
	}
	s.clients.hooks.Ended(s, l)
}

// Lasted returns how long there has been the session.
func (s *Session) Lasted() time.Duration { return time.Since(s.began) }

// Listening returns what the client has asked to hear outside of its requests, until the session
// ends. It calls add the first time, unless the session has ended.
func (s *Session) Listening(add func(*Listener)) *Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		s.listener = &Listener{Key: s.Client.Key(), Out: &s.out, to: make(map[string]string), ended: s.ended}
		if !s.ended {
			add(s.listener)
		}
	}
	return s.listener
}

// clock is the time that has passed, in nanoseconds, whatever the machine's clock is set to.
func clock() int64 { return int64(time.Since(began)) }

var began = time.Now()

// Declared keeps what a client says of itself in initialize.
func (s *Session) Declared(params gate.Doc) {
	info := params.Get("clientInfo")
	s.Client.Name, s.Client.Version = info.Get("name").Text(), info.Get("version").Text()
	s.Client.Capabilities, s.Client.Renders = Askable(params.Get("capabilities")), apps.Renders(params.Get("capabilities"))
	s.Protocol = message.Negotiated(params.Get("protocolVersion").Text())
}

// Used says that a request of the session has ended.
func (s *Session) Used() {
	s.seen.Store(clock())
	s.busy.Add(-1)
}
