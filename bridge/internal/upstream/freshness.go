package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// connection returns the connection that there is; nil if there is none.
func (e *Endpoint) connection() *link {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.link
}

// Refresh has the server listed anew if its listing must not be kept, and reports whether
// it must not.
func (e *Endpoint) Refresh() bool {
	l := e.connection()
	if l == nil || !l.stale() {
		return false
	}
	l.listsChanged()
	return true
}

// Relist has the server listed anew, when its listing is made safe in another way.
func (e *Endpoint) Relist() error {
	if l := e.connection(); l != nil {
		l.listsChanged()
	}
	return nil
}

// Fresh returns for how much longer what the server lists of a feature can be kept. It is
// false of a server that says how long, and does not list the feature.
func (e *Endpoint) Fresh(one gate.Feature) (left time.Duration, lists bool) {
	l := e.connection()
	if l == nil {
		return 0, true
	}
	now := l.announced.freshness()
	h, lists := now.hints[one]
	if now.hints == nil || lists && !h.given {
		return 0, true
	}
	return h.ttl - time.Since(now.at), lists
}

// Announced reports whether the server has announced what is not listed yet.
func (e *Endpoint) Announced() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.link != nil && e.link.announced.waiting() != nil
}

// Relisted waits, within ctx, until what the server has announced so far is listed:
// a call is made of the definition that the server has now, not of the one that it
// had until it said otherwise.
func (e *Endpoint) Relisted(ctx context.Context) {
	e.mu.RLock()
	l := e.link
	e.mu.RUnlock()
	if l == nil {
		return
	}
	for range 2 { // the listing under way may have begun before the announcement
		due := l.announced.waiting()
		if due == nil {
			return
		}
		select {
		case l.wanted <- struct{}{}:
		default:
		}
		select {
		case <-due:
		case <-l.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// stale reports whether there is a listing that must not be kept, and is to be made anew.
func (l *link) stale() bool {
	f := l.announced.freshness()
	if time.Since(f.at) < relistHinted {
		return false
	}
	for one, h := range f.hints {
		if h.given && h.ttl == 0 && !l.tellsOf(one) {
			return true
		}
	}
	return false
}
