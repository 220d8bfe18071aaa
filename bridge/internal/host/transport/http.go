package transport

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/web"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// ServeHTTP is the MCP endpoint. It refuses requests whose Host or Origin is
// neither loopback nor configured, which is what keeps web pages from reaching
// it (MCP 2025-11-25, basic/transports, "Security Warning").
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := f.allowed(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if f.share(w, r) {
		return
	}
	if f.peers != nil && f.peers.Drains() && !f.peers.Forwarded(r) { // the client's next request finds a gateway that stays
		w.Header().Set("Connection", "close")
	}
	revocations := f.revocations()
	who, err := f.caller(r)
	if err != nil {
		refuseCaller(w, r, err)
		return
	}
	group, id := r.PathValue(GroupParam), r.Header.Get(mcp.HeaderSession)
	if group != "" && (f.access.Group == nil || !f.access.Group(group)) {
		http.Error(w, "the gateway has no group of this name", http.StatusNotFound)
		return
	}
	if openedElsewhere(id, group) {
		http.Error(w, "the session was made at another address", http.StatusNotFound)
		return
	}
	p := sessions.Client{Who: who, Revocations: revocations, Groups: f.at(group), Stateless: isStatelessHTTP(r)}
	if id != "" {
		s := f.clients.Find(id, who)
		if s == nil {
			if node := nodeOf(id); !f.isHere(node) {
				if !f.forwardSession(w, r, p, node) {
					noSession(w)
				}
				return
			}
			s = f.takeUp(p, id)
		}
		if s == nil {
			noSession(w)
			return
		}
		defer s.Used()
		p = s.Client
		p.Who, p.Revocations = who, revocations
	}
	call := gate.Call{Who: who, Session: p.Key()}
	web.Own(r.Context(), call.Caller())
	p.Traceparent = r.Header.Get(mcp.HeaderTrace)
	f.serve(w, r, p)
}

// takeUp returns the session of an id that a gateway before this one gave the client; nil if it
// is not of such a one.
func (f *Front) takeUp(p sessions.Client, id string) *sessions.Session {
	params, ok := f.dispatch.TakeUp(p.Who, sealedIn(id))
	if !ok || p.Stateless {
		return nil
	}
	s := f.clients.Reopen(p, id, params)
	if s != nil {
		f.dispatch.Began(s.Client)
	}
	return s
}

// serve answers a request of a known client.
func (f *Front) serve(w http.ResponseWriter, r *http.Request, p sessions.Client) {
	switch {
	case r.Method == http.MethodPost:
		f.servePost(w, r, p)
	case unknownRevision(w, r):
	case p.Stateless:
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet && !accepts(r.Header).stream:
		message.Refuse(http.StatusNotAcceptable, nil, codeTransport, "Accept must contain 'text/event-stream' for GET requests").Write(w)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case p.Session == nil:
		http.Error(w, "Bad Request: "+r.Method+" requires an Mcp-Session-Id header", http.StatusBadRequest)
	case r.Method == http.MethodGet:
		p.Session.ServeStream(w, r)
	default:
		p.Session.End()
		w.WriteHeader(http.StatusNoContent)
	}
}

// servePost answers a message of a client.
func (f *Front) servePost(w http.ResponseWriter, r *http.Request, p sessions.Client) {
	body, share, ok := f.readPost(w, r, p)
	defer share.end()
	if !ok {
		return
	}
	dispatch.GrowStack(false)
	msg, no := f.screenHTTP(r, p, body)
	if no != nil {
		no.Write(w)
		return
	}
	if unknownRevision(w, r) || unacceptable(w, r) {
		return
	}
	m := message.New(msg)
	if no := f.checkPost(r, p, m); no != nil {
		no.Write(w)
		return
	}
	leave, done := f.forwardMessage(w, r, p, m, body)
	defer leave()
	if done {
		return
	}
	if !m.IsRequest() {
		if p.Session != nil {
			p.Session.Receive(p, m)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "initialize" && p.Session == nil && !p.Stateless {
		p = f.clients.Open(p, f.sessionID(r.PathValue(GroupParam), f.dispatch.SessionID(p.Who, m.Params)), m.Params)
		defer p.Session.Used()
	}
	if m.Method == "initialize" && p.Session != nil {
		w.Header().Set(mcp.HeaderSession, p.Session.ID)
	}
	a := sessions.NewAnswer(w, r, p.Session, m)
	if p.Session == nil {
		p.Channel = a
		res, err := f.dispatch.Respond(a.Context, p, m)
		f.answer(a, p, m, res, err)
		return
	}
	if !p.Session.Begin(m.ID, a.Cancel) {
		f.answer(a, p, m, gate.Doc{}, message.Duplicate(m.ID))
		return
	}
	p.Channel = a
	res, err := f.dispatch.Respond(a.Context, p, m)
	p.Session.Finish(m.ID)
	f.answer(a, p, m, res, err)
}

// readPost reads the message of a post. Its share in the bytes under way is nil if it has none, and
// ends once the request is answered. It is false without a message, and the client has been told so.
func (f *Front) readPost(w http.ResponseWriter, r *http.Request, p sessions.Client) (message []byte, share *body, ok bool) {
	began := time.Now()
	var sent io.Reader = http.MaxBytesReader(w, r.Body, f.terms.Load().MaxBody)
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		share = f.newBody(r, sent, p)
		sent = share
	}
	message, ok = readBody(w, sent, r.ContentLength)
	return message, share, ok && (time.Since(began) <= slowBody || f.holds(w, r, p))
}

// answer writes the answer to a request.
func (f *Front) answer(a *sessions.Answer, p sessions.Client, m message.Message, res gate.Doc, err error) {
	var msg []byte
	if a.Settle() {
		msg = f.dispatch.Reply(p, m, res, err)
	}
	a.End(msg, statusOf(p, err), f.access.Challenge)
}

// slowBody is how long the body of a message may take before its sender is found out again.
const slowBody = 100 * time.Millisecond

// holds reports whether a request would still be let in, as whom it was: its credential may have
// been revoked while its body was on the way. If not, the client has been told so.
func (f *Front) holds(w http.ResponseWriter, r *http.Request, p sessions.Client) bool {
	who, err := f.caller(r)
	if err == nil && who.Owner != p.Who.Owner {
		err = errNobody{}
	}
	if err != nil {
		refuseCaller(w, r, err)
	}
	return err == nil
}

// readBody reads the message of a post, within the time that it has. It is false if there
// is none, and the client has been told so.
func readBody(w http.ResponseWriter, sent io.Reader, length int64) (body []byte, ok bool) {
	body, err := mcp.ReadAll(sent, length)
	var large *http.MaxBytesError
	switch {
	case err == nil: // else the deadline stands: the rest may never come
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		return body, true
	case errors.As(err, &large):
		http.Error(w, "the message is larger than limits.body, "+mcp.Bytes(large.Limit), http.StatusRequestEntityTooLarge)
	case errors.Is(err, errBodies):
		w.Header().Set("Retry-After", "1")
		http.Error(w, errBodies.Error()+"; try again later", http.StatusServiceUnavailable)
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the message took too long to arrive", http.StatusRequestTimeout)
	} // else the client has gone
	return nil, false
}

// screenHTTP is [Dispatcher.screen] of the message of a post, whose headers say some of it
// again.
func (f *Front) screenHTTP(r *http.Request, p sessions.Client, body []byte) (gate.Doc, *message.Refusal) {
	msg, no := f.dispatch.Screen(r.Context(), p, body)
	switch {
	case no != nil:
		return gate.Doc{}, no
	case p.Stateless:
		return msg, f.checkHeaders(r, p, msg)
	case p.SessionID == "" && msg.Get("method").Text() != "initialize":
		return gate.Doc{}, message.Refuse(http.StatusBadRequest, msg.Get("id").Raw(), mcp.CodeInvalidRequest, "invalid request: it belongs to no session; initialize one, and name it in "+mcp.HeaderSession)
	}
	return msg, nil
}

func isStatelessHTTP(r *http.Request) bool {
	return r.Header.Get(mcp.HeaderProtocol) >= mcp.Stateless && r.Header.Get(mcp.HeaderSession) == ""
}

func (f *Front) allowed(r *http.Request) error {
	if !loopback.Host(r.Host) && !slices.Contains(f.terms.Load().Hosts, r.Host) {
		return errors.New("this Host is not allowed; add it to http.hosts in the configuration if it is meant")
	}
	if len(r.Header.Values("Origin")) > 1 {
		return errors.New("the request has several Origins, of which it can have one")
	}
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(f.terms.Load().Origins, origin) {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !loopback.Host(u.Host) {
		return errors.New("this Origin is not allowed; add it to http.origins in the configuration if it is meant")
	}
	return nil
}

// statusOf returns the status of an answer that is no stream (MCP 2026-07-28,
// basic/transports, for clients without a session).
func statusOf(p sessions.Client, err error) int {
	if err == nil {
		return http.StatusOK
	}
	code := message.ErrorOf(err).Code
	switch {
	case err == message.ErrDraining: // which has begun since the request came
		return http.StatusServiceUnavailable
	case p.Stateless && code == mcp.CodeInvalidRequest:
		return http.StatusBadRequest
	case p.Stateless && code == mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case p.Stateless && (code == mcp.CodeInvalidParams || code == mcp.CodeUnsupported || code == message.CodeLacksCapability):
		return http.StatusBadRequest
	}
	return http.StatusOK
}
