package sessions

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// streamAfter is how long a request of a session waits for its answer before the answer
	// becomes a stream, for which its client can come back.
	streamAfter = 500 * time.Millisecond
	// resumeWindow is how long a call goes on whose client has lost the stream.
	resumeWindow = 30 * time.Second
	// goneWindow is the same if the client has no stream at all, and has never come back for one.
	// SDKs come back after a second or two, so the client has most likely ended.
	goneWindow = 5 * time.Second
)

// An Answer is what a client gets for its request over HTTP: one JSON document, or a
// stream of events from the first message before it on, or after streamAfter.
//
// A request without a session ends with its connection. What is used in a session goes on:
// its client can come back for the stream. If it does not within resumeWindow, or goneWindow, the
// request is cancelled.
type Answer struct {
	w       http.ResponseWriter
	r       *http.Request
	session *Session // nil if it has none
	id      []byte   // of the request, JSON
	// resumable says that the request outlives its connection: it is a use of what a server
	// offers.
	resumable bool
	Context   context.Context
	Cancel    context.CancelFunc
	late      *time.Timer // nil without a session

	mu     sync.Mutex
	stream *stream       // nil while it is none
	sink   *respond.Sink // of the connection
	left   func() bool
	ended  bool
	scopes []string // that the client's token lacks for the request
}

var _ Channel = (*Answer)(nil)

func NewAnswer(w http.ResponseWriter, r *http.Request, s *Session, m message.Message) *Answer {
	a := &Answer{w: w, r: r, session: s, id: m.ID.Raw()}
	_, a.resumable = message.ActionOf(m.Method)
	if s == nil {
		a.Context, a.Cancel = context.WithCancel(r.Context())
		return a
	}
	a.Context, a.Cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	a.late = time.AfterFunc(streamAfter, func() { a.begun() })
	return a
}

// begun returns the stream, which has begun then; nil if the request has been answered.
func (a *Answer) begun() *stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stream != nil || a.ended {
		return a.stream
	}
	a.stream = &stream{}
	if s := a.session; s != nil {
		a.stream = s.open(a)
	}
	a.sink = respond.NewSink(a.w)
	a.sink.Begin("")
	a.stream.sink = a.sink
	if a.session != nil && a.session.primes(a.r) {
		a.stream.event("prime", nil)
	}
	go func() { // ends with the answer, or with the client
		if a.sink.Run() != nil {
			a.gone()
		}
	}()
	a.left = context.AfterFunc(a.r.Context(), a.gone)
	return a.stream
}

// gone says that the connection is broken, or that its client does not read.
func (a *Answer) gone() {
	a.sink.End()
	if a.session == nil || !a.resumable {
		a.Cancel()
		return
	}
	a.stream.detach(a.sink)
}

// send writes a message before the answer.
func (a *Answer) send(msg []byte) {
	if s := a.begun(); s != nil {
		s.write(msg)
	}
}

// Notify implements [Channel].
func (a *Answer) Notify(_ context.Context, method string, params gate.Doc) {
	a.send(message.Notification(method, params))
}

// Request implements [Channel].
func (a *Answer) Request(ctx context.Context, method string, params gate.Doc) (gate.Doc, error) {
	if a.session == nil {
		return gate.Doc{}, errors.New("a client without a session cannot be asked")
	}
	return a.session.Ask(ctx, a.send, method, params)
}

// Poll implements [Channel].
func (a *Answer) Poll(after time.Duration) {
	if a.session == nil || !a.session.primes(a.r) || !respond.HangsUp(a.w, a.r) {
		return
	}
	s := a.begun()
	if s == nil || after <= 0 || !s.reads(a.sink) {
		return
	}
	a.left()
	a.sink.Queue(fmt.Appendf(nil, "event: close\nretry: %d\ndata: \n\n", after.Milliseconds()))
	s.detach(a.sink) // first, because a client that reads the end comes back at once
	a.sink.HangUp()
}

// Settle says that there is an answer, and reports whether anybody wants it.
func (a *Answer) Settle() (wanted bool) {
	if a.late != nil {
		a.late.Stop()
	}
	wanted = a.Context.Err() == nil
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	return wanted
}

// End writes the answer, once it is settled; nil is none, of a request that was cancelled:
// a stream that ends without one says so. Anything else has a status, and, if
// the client's token lacks scopes, their challenge.
func (a *Answer) End(msg []byte, status int, challenge func(*http.Request, []string) string) {
	defer a.Cancel()
	switch s := a.stream; {
	case s != nil:
		s.end(msg)
		a.sink.End()
		a.sink.Wait()
		a.left()
	case msg == nil:
		a.w.Header()["Cache-Control"] = respond.Uncached
		a.w.Header().Set("Content-Type", "text/event-stream")
	default:
		a.w.Header()["Cache-Control"] = respond.Uncached
		if a.scopes != nil && challenge != nil {
			if c := challenge(a.r, a.scopes); c != "" {
				a.w.Header().Set("WWW-Authenticate", c)
				status = http.StatusForbidden
			}
		}
		respond.JSON(a.w, status, msg)
	}
}

// A stream is a stream of events as clients know it, which may outlive a connection. Those
// of a session are kept, so that a client can have again what it has missed.
type stream struct {
	session *Session // nil if nothing is kept
	name    string   // "" is that of what is said outside of requests
	of      *Answer  // whose it is; nil if it is of no request under way

	mu    sync.Mutex
	sink  *respond.Sink // where it is read; nil if it is not
	next  int           // number of the next event
	ended bool
}

// write writes a message.
func (s *stream) write(msg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.event("message", msg)
	}
}

// event writes an event. The caller holds mu, or has the only reference to the stream.
func (s *stream) event(name string, data []byte) {
	id, data := "", mcp.OneLine(data)
	if s.session != nil {
		s.session.clients.kept.Add(s.session.ID, s.name, data)
		id = eventID(s.name, s.next)
	}
	s.next++
	if s.sink != nil {
		s.sink.Write(respond.AppendEvent(nil, name, id, data))
	}
}

// end ends the stream with a last message, if there is one.
func (s *stream) end(msg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if msg != nil {
		s.event("message", msg)
	}
	s.ended = true
	if s.sink != nil {
		s.sink.End()
	}
	if s.of != nil && s.session != nil {
		s.session.clients.kept.Close(s.session.ID, s.name)
		s.session.close(s)
		s.session.clients.detached.remove(s.of)
	}
}

// reads reports whether a sink is where the stream is read.
func (s *stream) reads(k *respond.Sink) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sink == k && !s.ended
}

// isRead reports whether the stream is read anywhere.
func (s *stream) isRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sink != nil
}

var errLost = errors.New("failed to replay events")

// attach has the stream read at a sink: from the event after a number on, or from now on
// if the number is negative. Where it was read before, it ends: a client that comes back knows
// sooner than the gateway that its connection broke.
func (s *stream) attach(k *respond.Sink, after int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sink != nil {
		s.sink.End()
		s.sink = nil
	}
	events, ok := s.session.clients.kept.After(s.session.ID, s.name, after)
	if !ok {
		return errLost
	}
	if after >= 0 { // so that the client can come back again, also before the next event
		k.Queue(respond.AppendEvent(nil, "prime", eventID(s.name, after), nil))
	}
	for _, e := range events {
		if after++; len(e) > 0 {
			k.Queue(respond.AppendEvent(nil, "message", eventID(s.name, after), e))
		}
	}
	s.next = max(after, -1) + 1
	if s.ended {
		k.End()
		return nil
	}
	s.sink = k
	if s.of != nil {
		s.session.clients.detached.remove(s.of)
	}
	return nil
}

// detach says that the stream is not read at a sink any more.
func (s *stream) detach(k *respond.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sink != k {
		return
	}
	s.sink = nil
	if s.of != nil && !s.ended {
		s.session.clients.detached.add(s.of)
	}
}

// An event's id names its stream and its number in it.
func eventID(stream string, n int) string { return stream + "_" + strconv.Itoa(n) }

func parseEventID(id string) (stream string, n int, ok bool) {
	stream, number, _ := strings.Cut(id, "_")
	n, err := strconv.Atoi(number)
	return stream, n, err == nil && n >= 0
}

const (
	// overStream names streams that have ended with an answer of lostAnswer.
	overStream = "over"
	// maxNamedID bounds the ids of requests, JSON, that are in names of streams.
	maxNamedID = 64
)

// streamName returns a new name for the stream of a request. It holds the id of the request, so that
// a gateway that does not know the stream can still answer the request.
func streamName(id []byte) string {
	if len(id) > maxNamedID {
		return rand.Text()
	}
	return rand.Text() + "-" + hex.EncodeToString(id)
}

// lostAnswer returns the answer to the request of a stream that is not kept any more, or was another
// gateway's; nil if the name does not hold the id of the request.
func lostAnswer(stream string) []byte {
	_, named, _ := strings.Cut(stream, "-")
	id, err := hex.DecodeString(named)
	if err != nil || len(id) > maxNamedID {
		return nil
	}
	if d, err := gate.ParseDoc(id); err != nil || d.Kind() != doc.String && d.Kind() != doc.Number {
		return nil
	}
	no := mcp.Error{Code: mcp.CodeInternal, Message: "the gateway does not have the answer any more, as after a restart; the call may have been carried out, so find out before you call again"}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, no.JSON())
}

// ServeStream answers a GET of the client of a session, until the stream or the session
// has ended, or the client has gone.
func (s *Session) ServeStream(w http.ResponseWriter, r *http.Request) {
	st, after, no := s.streamFor(r)
	if no != nil {
		if no.Status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "POST, DELETE")
		}
		no.Write(w)
		return
	}
	k := respond.NewSink(w)
	noMore, ok := s.reads(k)
	if !ok {
		http.Error(w, "too many streams are open; end one first", http.StatusTooManyRequests)
		return
	}
	defer noMore()
	err := st.attach(k, after)
	lost := lostAnswer(st.name)
	switch {
	case err == nil:
		defer st.detach(k)
	case lost == nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	default: // there are clients that would wait for the answer without end
		k.Queue(respond.AppendEvent(nil, "message", eventID(overStream, 0), lost))
		k.End()
	}
	defer context.AfterFunc(r.Context(), k.End)()
	defer context.AfterFunc(s.clients.Drained, k.End)()
	k.Begin("ok")
	_ = k.Run() // a client that does not read may come back
}

// streamFor returns the stream that a GET asks for, and the number of the last event that
// its client has.
func (s *Session) streamFor(r *http.Request) (st *stream, after int, no *message.Refusal) {
	last, back := r.Header[mcp.HeaderLastEvent]
	if !back {
		return s.standaloneStream(), -1, nil
	}
	s.resumes.Store(true)
	name, after, ok := parseEventID(last[0])
	switch {
	case !ok:
		return nil, 0, &message.Refusal{Status: http.StatusBadRequest, Plain: fmt.Sprintf("malformed Last-Event-ID %q", last[0])}
	case name == overStream, s.clients.kept.Over(s.ID, name, after):
		return nil, 0, &message.Refusal{Status: http.StatusMethodNotAllowed, Plain: "the stream has ended, and its last event was sent"}
	}
	return s.stream(name), after, nil
}

// detached are the requests whose clients have lost their streams, and may come back.
type detached struct {
	mu     sync.Mutex
	closed bool // clients are no longer waited for
	by     map[*Answer]*time.Timer
}

// add gives a client time to come back for an answer.
func (w *detached) add(a *Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		a.Cancel()
		return
	}
	if w.by == nil {
		w.by = make(map[*Answer]*time.Timer)
	}
	w.by[a] = time.AfterFunc(goneWindow, func() { w.late(a) })
}

// late cancels the request of a client that has most likely ended; others have the rest of
// resumeWindow.
func (w *detached) late(a *Answer) {
	present := a.session.present()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.by[a] == nil: // the client is back
	case present:
		w.by[a] = time.AfterFunc(resumeWindow-goneWindow, a.Cancel)
	default:
		a.Cancel()
	}
}

// remove stops waiting for the client of an answer: it is back, or no longer expected.
func (w *detached) remove(a *Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.by[a]; t != nil {
		t.Stop()
		delete(w.by, a)
	}
}

// close cancels the requests whose clients have lost their streams, and keeps no others: the
// gateway is ending.
func (w *detached) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for a, t := range w.by {
		t.Stop()
		a.Cancel()
	}
	clear(w.by)
}

// NoteScopes notes which scopes the client's token lacks for a request over HTTP.
func (p Client) NoteScopes(err error) {
	r, refused := errors.AsType[*gate.Refusal](err)
	if a, ok := p.Channel.(*Answer); ok && refused && !r.Hidden && len(r.Scopes) > 0 {
		a.scopes = r.Scopes
	}
}
