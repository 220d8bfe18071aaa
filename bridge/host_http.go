package bridge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// sessionIdle is how long a session of the older revisions lives without a
// request.
const sessionIdle = 24 * time.Hour

// newHTTP returns the MCP endpoint of a group, of all if it is "": one server behind
// two handlers of the SDK, for one of them cannot serve both the protocol with sessions
// and the one without.
func (h *Host) newHTTP(group string) http.Handler {
	server := h.newServer(group, func(req mcp.Request) peerInfo {
		p := peerInfo{who: h.cfg.Who, groups: h.at(group)}
		p.name, p.version = claimed(req)
		if ss, ok := req.GetSession().(*mcp.ServerSession); ok {
			p.session, p.capabilities = sessionName(ss.ID()), h.peers.of(ss.ID())
		}
		return p
	})
	h.live(server)
	get := func(*http.Request) *mcp.Server { return server }
	options := mcp.StreamableHTTPOptions{
		Logger: sdkLog(h.cfg.Log), MaxRequestBodyBytes: h.cfg.MaxBody, SessionTimeout: sessionIdle,
		DisableLocalhostProtection: true, // allowed checks Host for every address
		EventStore:                 h.kept,
	}
	sessions := mcp.NewStreamableHTTPHandler(get, &options)
	options.Stateless, options.PropagateRequestCancellation, options.SessionTimeout, options.EventStore = true, true, 0, nil
	noSessions := mcp.NewStreamableHTTPHandler(get, &options)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isStatelessHTTP(r) {
			noSessions.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
}

// ServeHTTP is the MCP endpoint. It refuses requests whose Host or Origin is
// neither loopback nor configured, which is what keeps web pages from reaching
// it (MCP 2025-11-25, basic/transports, "Security Warning").
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.allowed(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	answer := newSlowWriter(w, cancel)
	defer answer.End()
	h.serveHTTP(answer, r)
}

func (h *Host) serveHTTP(w *slowWriter, r *http.Request) {
	group := r.PathValue(GroupParam)
	front, ok := h.front(group)
	if !ok {
		http.Error(w, "there is no such group", http.StatusNotFound)
		return
	}
	if strays(r.Header.Get(headerSession), group) {
		http.Error(w, "the session is not of this address", http.StatusNotFound)
		return
	}
	h.peers.use(r.Header.Get(headerSession))
	if r.Method == http.MethodPost {
		body, err := w.read(r, h.cfg.MaxBody)
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			http.Error(w, "the message is larger than limits.body", http.StatusRequestEntityTooLarge)
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			http.Error(w, "the message took too long to arrive", http.StatusRequestTimeout)
			return
		case err != nil:
			return // the client has gone
		}
		p := peerInfo{who: h.cfg.Who, groups: h.at(group), session: sessionName(r.Header.Get(headerSession)), stateless: isStatelessHTTP(r)}
		growStack(0)
		msg, no := h.screen(r.Context(), p, body)
		if no == nil && p.stateless {
			no = h.checkHeaders(r, p, msg)
		}
		if no == nil && !p.stateless && p.session == "" && msg.Get("method").Text() != "initialize" {
			no = refuse(http.StatusBadRequest, msg.Get("id").Raw(), codeInvalidRequest, "invalid request: it belongs to no session; initialize one, and name it in "+headerSession)
		}
		if no != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(no.status)
			_, _ = w.Write(no.body)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(stowTask(msg)))
		var done func()
		declares(r, msg)
		r, done = h.begins(r, msg)
		defer done()
		if msg.Get("method").Text() == methodListen {
			defer h.endWithStreams(&r)()
			h.writtenBy(r, w)
		}
		if h.quick(w, r, p, msg) {
			return
		}
		stowMethodHTTP(r, msg)
	}
	if r.Method == http.MethodGet {
		if h.kept.answered(r.Header.Get(headerSession), r.Header.Get(headerLastEvent)) {
			w.Header().Set("Allow", "POST, DELETE")
			http.Error(w, "the stream has ended with its answer, which was sent", http.StatusMethodNotAllowed)
			return
		}
		defer h.endWithStreams(&r)()
		gone, resumed := h.resume(r.Header.Get(headerSession), r.Header.Get(headerLastEvent))
		defer gone()
		if resumed && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			w.beginStream()
		}
	}
	if session := r.Header.Get(headerSession); r.Method == http.MethodDelete && session != "" {
		h.endSession(session)
	}
	front.ServeHTTP(w, r)
}

// endWithStreams makes r, which waits for notifications, end when the host has
// drained.
func (h *Host) endWithStreams(r **http.Request) (done func()) {
	ctx, cancel := context.WithCancel((*r).Context())
	stop := context.AfterFunc(h.streams, cancel)
	*r = (*r).WithContext(ctx)
	return func() { stop(); cancel() }
}

func isStatelessHTTP(r *http.Request) bool {
	return r.Header.Get(headerProtocol) >= stateless && r.Header.Get(headerSession) == ""
}

// headerPost carries the number of a post to receive. It is set on every
// request, whatever the client has sent.
const headerPost = "Wasmgate-Post"

// begins numbers a request. Its context ends with the client; that of its call too,
// unless the client can come back for the answer.
func (h *Host) begins(r *http.Request, msg gate.Doc) (numbered *http.Request, done func()) {
	session, client := r.Header.Get(headerSession), r.Context()
	h.cancelled(session, msg)
	ctx, cancel := context.WithCancel(client)
	p := &post{session: session, request: msg.Get("id").String(), ctx: ctx, cancel: cancel}
	_, acts := actionOf(msg.Get("method").Text())
	resumable := session != "" && !msg.Get("id").IsZero() && acts
	if resumable {
		var end context.CancelFunc
		p.ctx, end = context.WithCancel(context.WithoutCancel(client))
		p.cancel = func() { cancel(); end() }
	}
	h.mu.Lock()
	h.last++
	number := strconv.FormatUint(h.last, 10)
	h.posts[number] = p
	h.mu.Unlock()
	r = r.WithContext(context.WithValue(ctx, postKey{}, number))
	r.Header.Set(headerPost, number)
	return r, func() {
		h.left(number, resumable) // if its call is still under way, the client or the server has ended the stream
		cancel()
	}
}

// during returns a context that ends with ctx, or with the post that brought a
// request, if one did.
func (h *Host) during(ctx context.Context, extra *mcp.RequestExtra) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if extra == nil || extra.Header.Get(headerPost) == "" {
		return ctx, cancel
	}
	number := extra.Header.Get(headerPost)
	h.mu.Lock()
	p, ok := h.posts[number]
	h.mu.Unlock()
	if !ok {
		cancel() // the client has gone already
		return ctx, cancel
	}
	stop := context.AfterFunc(p.ctx, cancel)
	return ctx, func() { stop(); cancel(); h.callEnded(number) }
}

// writtenBy says that the answer to a post is written by w, and writesTo returns what
// writes a message between those of the SDK; nil if nothing does.
func (h *Host) writtenBy(r *http.Request, w *slowWriter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.posts[r.Header.Get(headerPost)]; p != nil {
		p.write = w.event
	}
}

func (h *Host) writesTo(extra *mcp.RequestExtra) func([]byte) error {
	if extra == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.posts[extra.Header.Get(headerPost)]; p != nil {
		return p.write
	}
	return nil
}

// endSession cancels what a session has under way.
func (h *Host) endSession(session string) {
	h.sessions.forget(session)
	h.mu.Lock()
	defer h.mu.Unlock()
	for number, p := range h.posts {
		if p.session == session {
			p.cancel()
			if p.window != nil {
				p.window.Stop()
				delete(h.posts, number)
			}
		}
	}
}

func (h *Host) allowed(r *http.Request) error {
	if !loopbackHost(r.Host) && !slices.Contains(h.cfg.Hosts, r.Host) {
		return errors.New("this Host is not allowed; add it to http.hosts in the configuration if it is meant")
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(h.cfg.Origins, origin) {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !loopbackHost(u.Host) {
		return errors.New("this Origin is not allowed; add it to http.origins in the configuration if it is meant")
	}
	return nil
}

// loopbackHost reports whether host[:port] is this machine by its own name.
func loopbackHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
