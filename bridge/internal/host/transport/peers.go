package transport

import (
	"context"
	"net/http"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Peers are the other gateways of a database. What is at one of them has an id that names it.
type Peers interface {
	// Node is the name of this gateway.
	Node() string
	// Forward has the gateway of a name answer a request, whose body was read. Nothing was answered
	// if there is none of that name any more, nor with an error, which the client may read.
	Forward(w http.ResponseWriter, r *http.Request, node string, body []byte) (gone bool, err error)
	// Home is the gateway that has what the requests of an owner leave behind. Now asks for what holds
	// at the moment, and not a few seconds ago.
	Home(ctx context.Context, of gate.Owner, now bool) (node string, err error)
}

// Share has requests about what is at other gateways answered there, and while homes returns true those
// of an owner at one of them. It is called before the first request.
func (f *Front) Share(p Peers, homes func() bool) { f.peers, f.homes = p, homes }

// forward has another gateway answer a request of a client. It is false if this one has to: the
// request is about nothing that is elsewhere, or its gateway is gone.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, node string, body []byte, id gate.Doc) bool {
	if f.peers == nil || node == "" || node == f.peers.Node() {
		return false
	}
	if r.Method == http.MethodPost && f.dispatch.Begin() { // a drain waits for it
		defer f.dispatch.End()
	}
	gone, err := f.peers.Forward(w, r, node, body)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		message.Refuse(http.StatusServiceUnavailable, id.Raw(), mcp.CodeInternal, err.Error()).Write(w)
	}
	return !gone
}

// forwardSession is forward of a request in a session that is not here.
func (f *Front) forwardSession(w http.ResponseWriter, r *http.Request, p sessions.Client, node string) bool {
	if f.peers == nil || node == "" {
		return false
	}
	var body []byte
	if r.Method == http.MethodPost {
		message, share, ok := f.readPost(w, r, p)
		defer share.end()
		if !ok {
			return true
		}
		body = message
	}
	return f.forward(w, r, node, body, gate.Doc{})
}

// forwardMessage is forward of a message of a client without a session, or of one that begins a session.
func (f *Front) forwardMessage(w http.ResponseWriter, r *http.Request, p sessions.Client, m message.Message, body []byte) bool {
	if f.peers == nil || p.Session != nil {
		return false
	}
	if names := r.Header[mcp.HeaderName]; p.Stateless && len(names) > 0 { // which was decoded, and checked
		r.Header.Set(mcp.HeaderName, mcp.EncodeHeader(names[0]))
	}
	if node := dispatch.NodeOf(m); p.Stateless && node != "" {
		return f.forward(w, r, node, body, m.ID)
	}
	if !f.homes() {
		return false
	}
	for _, now := range []bool{false, true} { // the home of a moment ago may have ended
		node, err := f.peers.Home(r.Context(), p.Who.Owner, now)
		if err != nil || node == f.peers.Node() {
			return false // without the database no call is admitted here, and lists are answered
		}
		if f.forward(w, r, node, body, m.ID) {
			return true
		}
	}
	return false
}
