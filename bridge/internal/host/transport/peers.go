package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// Share has requests about what is at other gateways answered there, and while homes returns true those
// of an owner at one of them. It is called before the first request.
func (f *Front) Share(p options.Peers, homes func() bool) { f.peers, f.homes = p, homes }

// Await waits until no request of an owner that a client without a session has sent is under way, but not long.
func (f *Front) Await(ctx context.Context, of gate.Owner) { f.owners.await(ctx, of) }

// Uses reports whether an owner has a session here, or a request under way.
func (f *Front) Uses(of gate.Owner) bool { return f.owners.busy(of) || f.dispatch.Clients().Has(of) }

// forward has another gateway answer a request of a client. It is false if this one has to: the
// request is about nothing that is elsewhere, or its gateway is gone. Again says that the caller looks
// once more where it is if that gateway does not answer.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, node string, body []byte, id gate.Doc, again bool) bool {
	if f.peers == nil || node == "" || node == f.peers.Node() {
		return false
	}
	if r.Method == http.MethodPost && f.dispatch.Begin() { // a drain waits for it
		defer f.dispatch.End()
	}
	gone, err := f.peers.Forward(w, r, node, body)
	if _, unsent := errors.AsType[interface {
		error
		Unsent()
	}](err); unsent && again {
		return false
	}
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
	return f.forward(w, r, node, body, gate.Doc{}, false)
}

// forwardMessage is forward of a message of a client without a session, or of one that begins a session. Leave
// is called once the message is answered.
func (f *Front) forwardMessage(w http.ResponseWriter, r *http.Request, p sessions.Client, m message.Message, body []byte) (leave func(), done bool) {
	if f.peers == nil || p.Session != nil {
		return none, false
	}
	if names := r.Header[mcp.HeaderName]; p.Stateless && len(names) > 0 { // which was decoded, and checked
		r.Header.Set(mcp.HeaderName, mcp.EncodeHeader(names[0]))
	}
	if node := dispatch.NodeOf(m); p.Stateless && node != "" {
		return none, f.forward(w, r, node, body, m.ID, false)
	}
	// It counts before it looks whether the gateway drains, so that a drain that waits for the owner sees it.
	leave = none
	if f.homes() {
		leave = f.owners.enter(p.Who.Owner)
	}
	drains := f.peers.Drains()
	if drains { // what the others begin with includes what requests under way bring
		leave()
		leave = none
		f.owners.await(r.Context(), p.Who.Owner)
	}
	if !f.homes() && (!drains || f.peers.Forwarded(r)) {
		return leave, false
	}
	for _, now := range []bool{drains, true, true} { // the home of a moment ago may have ended
		node, err := f.peers.Home(r.Context(), p.Who.Owner, now)
		if err != nil || node == f.peers.Node() {
			return leave, false // without the database no call is admitted here, and lists are answered
		}
		if f.peers.Forwarded(r) && !now {
			continue
		}
		if f.peers.Forwarded(r) {
			f.peers.Moved(w)
			return leave, true
		}
		if f.forward(w, r, node, body, m.ID, !now) {
			return leave, true
		}
	}
	return leave, false
}

func none() {}

// owners are those that have requests under way here, of clients without a session.
type owners struct {
	mu  sync.Mutex
	has map[gate.Owner]int
}

// enter counts a request until leave is called.
func (o *owners) enter(of gate.Owner) (leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.has == nil {
		o.has = map[gate.Owner]int{}
	}
	o.has[of]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.has[of]--; o.has[of] == 0 {
			delete(o.has, of)
		}
	}
}

func (o *owners) busy(of gate.Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.has[of] > 0
}

// drainTime is how long a request waits for others of its owner that a gateway carries out which drains. It is
// answered elsewhere then, where values count as lost if the others bring more.
const drainTime = 5 * time.Second

// await waits until no request of an owner is under way, for drainTime at most.
func (o *owners) await(ctx context.Context, of gate.Owner) {
	for giveUp := time.Now().Add(drainTime); o.busy(of) && ctx.Err() == nil && time.Now().Before(giveUp); {
		time.Sleep(10 * time.Millisecond)
	}
}
