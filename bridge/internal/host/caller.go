package host

import (
	"context"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// Whoever sends a request is its principal, found out anew for each. What a request makes
// and leaves behind is that principal's: sessions, streams, parked calls, tasks, questions
// and subscriptions. To anybody else none of it exists.

type principalKey struct{}

// WithPrincipal returns the context of requests that a principal sends.
func WithPrincipal(ctx context.Context, who *gate.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// caller returns who sends a request.
func (h *Host) caller(r *http.Request) (*gate.Principal, error) {
	if who, ok := r.Context().Value(principalKey{}).(*gate.Principal); ok && who != nil {
		return who, nil
	}
	if h.cfg.Principal == nil {
		return h.cfg.Who, nil
	}
	who, err := h.cfg.Principal(r)
	if err == nil && who == nil {
		err = errNobody{}
	}
	return who, err
}

// errNobody is the error of a request that is nobody's.
type errNobody struct{}

func (errNobody) Error() string { return "authentication is required" }

// refuseCaller answers a request whose sender is refused, in the words of the error if it
// has any.
func refuseCaller(w http.ResponseWriter, r *http.Request, err error) {
	if own, ok := err.(http.Handler); ok {
		own.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, errNobody{}.Error(), http.StatusUnauthorized)
}

// sender returns who has sent what the SDK has decoded; nil if nobody can tell any more. The
// SDK may come to a notification when its request has ended: it is of the session's owner,
// for nobody else's gets as far as that.
func (h *Host) sender(req sdk.Request) *gate.Principal {
	if p, _ := h.posts.of(req.GetExtra()); p != nil {
		return p.who
	}
	if ss, ok := req.GetSession().(*sdk.ServerSession); ok {
		return h.peers.owner(ss.ID())
	}
	return nil
}

// noSession answers a request that names a session which is not there, or is not the
// sender's: nobody learns which.
func noSession(w http.ResponseWriter) {
	http.Error(w, "session not found", http.StatusNotFound)
}

// owner returns whose a session is; nil if there is none.
func (p *peers) owner(id string) *gate.Principal {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.by[id]; at != nil {
		return at.Value.(*peerSession).who
	}
	return nil
}

// use says that a request of a session has come, and reports whether there is such a
// session of a principal's.
func (p *peers) use(id string, who *gate.Principal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.by[id]
	if at == nil || at.Value.(*peerSession).who.Owner != who.Owner {
		return false
	}
	p.used.MoveToFront(at)
	return true
}

// victim returns the session that makes room for another: of the principal who has the
// most, the one that was not used for the longest time. The caller holds mu.
func (p *peers) victim() *peerSession {
	has := make(map[gate.Owner]int)
	for at := p.used.Front(); at != nil; at = at.Next() {
		has[at.Value.(*peerSession).who.Owner]++
	}
	var out *peerSession
	for at := p.used.Back(); at != nil; at = at.Prev() {
		if s := at.Value.(*peerSession); out == nil || has[s.who.Owner] > has[out.who.Owner] {
			out = s
		}
	}
	return out
}
