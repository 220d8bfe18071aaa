package host

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/loopback"
)

// ServeHTTP is the MCP endpoint. It refuses requests whose Host or Origin is
// neither loopback nor configured, which is what keeps web pages from reaching
// it (MCP 2025-11-25, basic/transports, "Security Warning").
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.allowed(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	who, err := h.caller(r)
	if err != nil {
		refuseCaller(w, r, err)
		return
	}
	group, id := r.PathValue(GroupParam), r.Header.Get(mcp.HeaderSession)
	if group != "" && (h.cfg.Group == nil || !h.cfg.Group(group)) {
		http.Error(w, "there is no such group", http.StatusNotFound)
		return
	}
	if openedElsewhere(id, group) {
		http.Error(w, "the session is not of this address", http.StatusNotFound)
		return
	}
	p := client{who: who, groups: h.at(group), stateless: isStatelessHTTP(r)}
	if id != "" {
		s := h.clients.sessions.find(id, who)
		if s == nil {
			noSession(w)
			return
		}
		defer s.used()
		p = s.client
		p.who = who
	}
	p.traceparent = r.Header.Get(mcp.HeaderTrace)
	h.serve(w, r, p)
}

// serve answers a request of a known client.
func (h *Host) serve(w http.ResponseWriter, r *http.Request, p client) {
	switch {
	case r.Method == http.MethodPost:
		h.servePost(w, r, p)
	case unknownRevision(w, r):
	case p.stateless:
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet && !accepts(r.Header).stream:
		http.Error(w, "Accept must contain 'text/event-stream' for GET requests", http.StatusBadRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case p.session == nil:
		http.Error(w, "Bad Request: "+r.Method+" requires an Mcp-Session-Id header", http.StatusBadRequest)
	case r.Method == http.MethodGet:
		p.session.serveStream(w, r)
	default:
		p.session.end()
		w.WriteHeader(http.StatusNoContent)
	}
}

// servePost answers a message of a client.
func (h *Host) servePost(w http.ResponseWriter, r *http.Request, p client) {
	began := time.Now()
	body, ok := h.readBody(w, r)
	if !ok || time.Since(began) > slowBody && !h.holds(w, r, p) {
		return
	}
	growStack(false)
	msg, no := h.screenHTTP(r, p, body)
	if no != nil {
		no.write(w)
		return
	}
	if unknownRevision(w, r) || unacceptable(w, r) {
		return
	}
	m := messageOf(msg)
	if no := h.checkPost(r, p, m); no != nil {
		no.write(w)
		return
	}
	if !m.isRequest() {
		if p.session != nil {
			p.session.receive(p, m)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.method == "initialize" && p.session == nil && !p.stateless {
		p = h.newSession(r, p, m.params)
		defer p.session.used()
	}
	if m.method == "initialize" && p.session != nil {
		w.Header().Set(mcp.HeaderSession, p.session.id)
	}
	a := newAnswer(w, r, p.session, m)
	if p.session == nil {
		p.channel = a
		res, err := h.respond(a.ctx, p, m)
		h.answer(a, p, m, res, err)
		return
	}
	if !p.session.begin(m.id, a.cancel) {
		h.answer(a, p, m, gate.Doc{}, duplicate(m.id))
		return
	}
	p.channel = a
	res, err := h.respond(a.ctx, p, m)
	p.session.finish(m.id)
	h.answer(a, p, m, res, err)
}

// answer writes the answer to a request.
func (h *Host) answer(a *answer, p client, m message, res gate.Doc, err error) {
	var msg []byte
	if a.settle() {
		msg = h.reply(p, m, res, err)
	}
	challenge := ""
	if h.cfg.Challenge != nil && a.scopes != nil {
		challenge = h.cfg.Challenge(a.r, a.scopes)
	}
	a.end(msg, statusOf(p, err), challenge)
}

// slowBody is how long the body of a message may take before its sender is found out again.
const slowBody = 100 * time.Millisecond

// holds reports whether a request would still be let in, as whom it was: its credential may have
// been revoked while its body was on the way. If not, the client has been told so.
func (h *Host) holds(w http.ResponseWriter, r *http.Request, p client) bool {
	who, err := h.caller(r)
	if err == nil && who.Owner != p.who.Owner {
		err = errNobody{}
	}
	if err != nil {
		refuseCaller(w, r, err)
	}
	return err == nil
}

// readBody reads the message of a post, within the time that it has. It is false if there
// is none, and the client has been told so.
func (h *Host) readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	body, err := mcp.ReadAll(http.MaxBytesReader(w, r.Body, h.terms.Load().MaxBody), r.ContentLength)
	var large *http.MaxBytesError
	switch {
	case err == nil: // else the deadline stands: the rest may never come
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		return body, true
	case errors.As(err, &large):
		http.Error(w, "the message is larger than limits.body, "+mcp.Bytes(large.Limit), http.StatusRequestEntityTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the message took too long to arrive", http.StatusRequestTimeout)
	} // else the client has gone
	return nil, false
}

// screenHTTP is [Host.screen] of the message of a post, whose headers say some of it
// again.
func (h *Host) screenHTTP(r *http.Request, p client, body []byte) (gate.Doc, *refusal) {
	msg, no := h.screen(r.Context(), p, body)
	switch {
	case no != nil:
		return gate.Doc{}, no
	case p.stateless:
		return msg, h.checkHeaders(r, p, msg)
	case p.sessionID == "" && msg.Get("method").Text() != "initialize":
		return gate.Doc{}, refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeInvalidRequest, "invalid request: it belongs to no session; initialize one, and name it in "+mcp.HeaderSession)
	}
	return msg, nil
}

func isStatelessHTTP(r *http.Request) bool {
	return r.Header.Get(mcp.HeaderProtocol) >= mcp.Stateless && r.Header.Get(mcp.HeaderSession) == ""
}

func (h *Host) allowed(r *http.Request) error {
	if !loopback.Host(r.Host) && !slices.Contains(h.terms.Load().Hosts, r.Host) {
		return errors.New("this Host is not allowed; add it to http.hosts in the configuration if it is meant")
	}
	if len(r.Header.Values("Origin")) > 1 {
		return errors.New("the request has several Origins, of which it can have one")
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(h.terms.Load().Origins, origin) {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !loopback.Host(u.Host) {
		return errors.New("this Origin is not allowed; add it to http.origins in the configuration if it is meant")
	}
	return nil
}

// newSession begins a session over HTTP, for the parameters of an initialize that has been
// checked.
func (h *Host) newSession(r *http.Request, p client, params gate.Doc) client {
	s := &session{clients: &h.clients, began: time.Now(), id: newSessionID(r.PathValue(GroupParam))}
	p.session, p.sessionID = s, mcp.SessionName(s.id)
	s.client = p
	s.out = outbox{send: s.notify, clean: h.cfg.Clean}
	s.declared(params)
	h.clients.sessions.add(s)
	return s.client
}

// statusOf returns the status of an answer that is no stream (MCP 2026-07-28,
// basic/transports, for clients without a session).
func statusOf(p client, err error) int {
	if err == nil {
		return http.StatusOK
	}
	code := errorOf(err).Code
	switch {
	case code == mcp.CodeInvalidRequest:
		return http.StatusBadRequest
	case p.stateless && code == mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case p.stateless && (code == mcp.CodeInvalidParams || code == mcp.CodeUnsupported || code == codeLacksCapability):
		return http.StatusBadRequest
	}
	return http.StatusOK
}
