package host

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// resumeWindow is how long a call goes on whose client has lost the stream.
const resumeWindow = 30 * time.Second

// headerPost carries the number of a post past the SDK. It is set on every request,
// whatever the client has sent.
const headerPost = "Wasmgate-Post"

// A post is an HTTP request under way that a client has sent. The call of a session
// outlives it by resumeWindow if the client has lost the stream of the answer, and by
// as long as the client is back for it.
type post struct {
	// ctx is the call's, where the SDK runs it; cancel ends it and the request.
	ctx    context.Context
	cancel context.CancelFunc
	who    *gate.Principal
	write  func(msg []byte) error // writes to a stream of notifications; nil if it is none

	// Set when it begins:
	number    string
	session   string
	request   string // the JSON of its id; "" of one that has none
	resumable bool   // the client can come back for the answer

	// The mu of the posts guards what follows.
	stream  string      // of the answer; "" while there is none
	resumed int         // requests that wait for the rest of the stream
	window  *time.Timer // at whose end the call ends; nil unless the client has gone
}

// postKey is where the context of an HTTP request has its post, for the SDK gives the
// request itself to nobody.
type postKey struct{}

// posts are the HTTP requests under way, by number.
type posts struct {
	mu     sync.Mutex
	by     map[string]*post
	last   uint64 // number
	closed bool   // no client is waited for any more
}

// begin numbers a request, until left is called. Its context ends with the client; that
// of its call too, unless the client can come back for the answer.
func (s *posts) begin(r *http.Request, p *post, msg gate.Doc) {
	p.session, p.request = r.Header.Get(mcp.HeaderSession), msg.Get("id").String()
	_, acts := actionOf(msg.Get("method").Text())
	if p.resumable = p.session != "" && p.request != "" && acts; p.resumable {
		call, end := context.WithCancel(context.WithoutCancel(r.Context()))
		request := p.cancel
		p.ctx, p.cancel = call, func() { request(); end() }
	}
	s.mu.Lock()
	s.last++
	p.number = strconv.FormatUint(s.last, 10)
	s.by[p.number] = p
	s.mu.Unlock()
	r.Header.Set(headerPost, p.number)
}

// left ends what a post has under way when its request has ended, for the client or the
// server has ended the stream, unless the client may come back.
func (s *posts) left(p *post) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.by[p.number] != p: // its call has ended
	case p.resumable && p.stream != "" && p.ctx.Err() == nil && !s.closed:
		s.expect(p)
	default:
		p.cancel()
		delete(s.by, p.number)
	}
}

// expect gives the client of a post time to come back. The caller holds mu.
func (s *posts) expect(p *post) {
	var window *time.Timer
	window = time.AfterFunc(resumeWindow, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.window == window && s.by[p.number] == p {
			p.cancel()
			delete(s.by, p.number)
		}
	})
	p.window = window
}

// answersOn notes which stream answers the post of a request.
func (s *posts) answersOn(ctx context.Context, stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, _ := ctx.Value(postKey{}).(*post); p != nil && s.by[p.number] == p {
		p.stream = stream
	}
}

// resume keeps the call going whose stream a client has come back for, until gone is
// called. It reports whether there is such a call.
func (s *posts) resume(session, lastEvent string) (gone func(), resumed bool) {
	stream, _, _ := strings.Cut(lastEvent, "_") // as the SDK writes it
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.by {
		if stream == "" || p.stream != stream || p.session != session {
			continue
		}
		p.resumed++
		if p.window != nil {
			p.window.Stop()
			p.window = nil
		}
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if p.resumed--; p.resumed == 0 && s.by[p.number] == p {
				s.expect(p)
			}
		}, true
	}
	return func() {}, false
}

// of returns the post that brought a request; nil if none did, or it has ended. came is
// whether one did.
func (s *posts) of(extra *sdk.RequestExtra) (p *post, came bool) {
	if extra == nil || extra.Header.Get(headerPost) == "" {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[extra.Header.Get(headerPost)], true
}

// during returns a context that ends with ctx, or with the post that brought a
// request, if one did.
func (s *posts) during(ctx context.Context, extra *sdk.RequestExtra) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	p, came := s.of(extra)
	switch {
	case !came:
		return ctx, cancel
	case p == nil:
		cancel() // the client has gone already
		return ctx, cancel
	}
	stop := context.AfterFunc(p.ctx, cancel)
	return ctx, func() { stop(); cancel(); s.callEnded(p) }
}

// callEnded forgets a post whose call has ended.
func (s *posts) callEnded(p *post) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[p.number] != p {
		return
	}
	if p.window != nil {
		p.window.Stop()
	}
	delete(s.by, p.number)
}

// writesTo returns what writes a message between those of the SDK to the stream that
// answers a request; nil if nothing does.
func (s *posts) writesTo(extra *sdk.RequestExtra) func([]byte) error {
	if p, _ := s.of(extra); p != nil {
		return p.write
	}
	return nil
}

// cancelled ends the call of a session that a client wants no answer to any more.
func (s *posts) cancelled(session string, msg gate.Doc) {
	if session == "" || msg.Get("method").Text() != mcp.MethodCancelled {
		return
	}
	request := msg.At("/params/requestId").String()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.by {
		if p.session == session && p.request == request {
			p.cancel()
		}
	}
}

// end cancels what a session has under way.
func (s *posts) end(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, p := range s.by {
		if p.session == session {
			p.cancel()
			if p.window != nil {
				p.window.Stop()
				delete(s.by, number)
			}
		}
	}
}

// close ends the calls of clients that have gone, and lets none wait for one that goes:
// the gateway is ending.
func (s *posts) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for number, p := range s.by {
		if p.window != nil {
			p.window.Stop()
			p.cancel()
			delete(s.by, number)
		}
	}
}
