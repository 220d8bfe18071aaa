package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/loopback"
)

// sessionIdle is how long a session of the older revisions lives without a
// request.
const sessionIdle = 24 * time.Hour

// newHTTP returns the MCP endpoint of a group, of all if it is "": one server behind
// two handlers of the SDK, for one of them cannot serve both the protocol with sessions
// and the one without.
func (h *Host) newHTTP(group string) http.Handler {
	server := h.newServer(group, func(req sdk.Request) peerInfo {
		p := peerInfo{who: h.sender(req), groups: h.at(group)}
		if extra := req.GetExtra(); extra != nil {
			p.traceparent = extra.Header.Get(mcp.HeaderTrace)
		}
		p.name, p.version = claimed(req)
		if ss, ok := req.GetSession().(*sdk.ServerSession); ok {
			p.session, p.capabilities = sessionName(ss.ID()), h.peers.of(ss.ID())
		}
		return p
	})
	h.servers.add(server)
	get := func(*http.Request) *sdk.Server { return server }
	options := sdk.StreamableHTTPOptions{
		Logger: sdkLog(h.cfg.Log), MaxRequestBodyBytes: h.cfg.MaxBody, SessionTimeout: sessionIdle,
		DisableLocalhostProtection: true, // allowed checks Host for every address
		EventStore:                 h.kept,
	}
	sessions := sdk.NewStreamableHTTPHandler(get, &options)
	options.Stateless, options.PropagateRequestCancellation, options.SessionTimeout, options.EventStore = true, true, 0, nil
	noSessions := sdk.NewStreamableHTTPHandler(get, &options)
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
	BoundBody(w, r, h.cfg.BodyTime)
	if err := h.allowed(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	who, err := h.caller(r)
	if err != nil {
		refuseCaller(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p := &post{ctx: ctx, cancel: cancel, who: who}
	answer := newSlowWriter(w, cancel)
	defer answer.End()
	h.serveHTTP(answer, r.WithContext(context.WithValue(ctx, postKey{}, p)), p)
}

func (h *Host) serveHTTP(w *slowWriter, r *http.Request, p *post) {
	group, session := r.PathValue(GroupParam), r.Header.Get(mcp.HeaderSession)
	front, ok := h.front(group)
	if !ok {
		http.Error(w, "there is no such group", http.StatusNotFound)
		return
	}
	if strays(session, group) {
		http.Error(w, "the session is not of this address", http.StatusNotFound)
		return
	}
	if session != "" && !h.peers.use(session, p.who) {
		noSession(w)
		return
	}
	switch {
	case r.Method == http.MethodPost:
		if session == "" {
			w.begins = func(answer http.Header) { h.peers.announce(answer.Get(mcp.HeaderSession), p.who) }
		}
		h.servePost(w, r, p, front)
		return
	case r.Method == http.MethodGet:
		h.serveGet(w, r, front)
		return
	case r.Method == http.MethodDelete && session != "":
		h.quickly.forget(session)
		h.posts.end(session)
	}
	front.ServeHTTP(w, r)
}

// servePost answers a message of a client.
func (h *Host) servePost(w *slowWriter, r *http.Request, p *post, front http.Handler) {
	body, ok := h.readBody(w, r)
	if !ok {
		return
	}
	session := r.Header.Get(mcp.HeaderSession)
	from := peerInfo{who: p.who, groups: h.at(r.PathValue(GroupParam)), session: sessionName(session), stateless: isStatelessHTTP(r)}
	growStack(0)
	msg, no := h.screenHTTP(r, from, body)
	if no != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(no.status)
		_, _ = w.Write(no.body)
		return
	}
	listens := msg.Get("method").Text() == mcp.MethodListen
	if listens {
		p.write = w.event
	}
	h.posts.cancelled(session, msg)
	h.posts.begin(r, p, msg)
	defer h.posts.left(p)
	if h.quick(w, r, from, msg) {
		return
	}
	if listens {
		defer h.endWithStreams(&r)()
	}
	declares(r, msg)
	r.Body = io.NopCloser(bytes.NewReader(stowTask(stow(msg))))
	stowMethodHTTP(r, msg)
	front.ServeHTTP(w, r)
}

// readBody reads the message of a post. It is false if there is none, and the client has
// been told so.
func (h *Host) readBody(w *slowWriter, r *http.Request) (body []byte, ok bool) {
	body, err := w.read(r, h.cfg.MaxBody)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return body, true
	case errors.As(err, &large):
		http.Error(w, "the message is larger than limits.body", http.StatusRequestEntityTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the message took too long to arrive", http.StatusRequestTimeout)
	} // else the client has gone
	return nil, false
}

// screenHTTP is [Host.screen] of the message of a post, whose headers say some of it
// again.
func (h *Host) screenHTTP(r *http.Request, p peerInfo, body []byte) (gate.Doc, *refusal) {
	msg, no := h.screen(r.Context(), p, body)
	switch {
	case no != nil:
		return gate.Doc{}, no
	case p.stateless:
		return msg, h.checkHeaders(r, p, msg)
	case p.session == "" && msg.Get("method").Text() != "initialize":
		return gate.Doc{}, refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeInvalidRequest, "invalid request: it belongs to no session; initialize one, and name it in "+mcp.HeaderSession)
	}
	return msg, nil
}

// serveGet answers a client of a session that wants a stream: of what is said outside of
// its calls, or the rest of one that broke.
func (h *Host) serveGet(w *slowWriter, r *http.Request, front http.Handler) {
	session, lastEvent := r.Header.Get(mcp.HeaderSession), r.Header.Get(mcp.HeaderLastEvent)
	if h.kept.answered(session, lastEvent) {
		w.Header().Set("Allow", "POST, DELETE")
		http.Error(w, "the stream has ended with its answer, which was sent", http.StatusMethodNotAllowed)
		return
	}
	defer h.endWithStreams(&r)()
	gone, resumed := h.posts.resume(session, lastEvent)
	defer gone()
	if resumed && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		w.beginStream()
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
	return r.Header.Get(mcp.HeaderProtocol) >= mcp.Stateless && r.Header.Get(mcp.HeaderSession) == ""
}

func (h *Host) allowed(r *http.Request) error {
	if !loopback.Host(r.Host) && !slices.Contains(h.cfg.Hosts, r.Host) {
		return errors.New("this Host is not allowed; add it to http.hosts in the configuration if it is meant")
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(h.cfg.Origins, origin) {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !loopback.Host(u.Host) {
		return errors.New("this Origin is not allowed; add it to http.origins in the configuration if it is meant")
	}
	return nil
}
