package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/gate"
)

// connection returns the connection that there is; nil if there is none.
func (e *Endpoint) connection() *link.Link {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.link
}

// Refresh has the server listed anew if its listing must not be kept, and reports whether
// it must not.
func (e *Endpoint) Refresh() bool {
	l := e.connection()
	return l != nil && l.Refresh()
}

// skillsKept is for how long the skills of a server are kept: it need not say that they have changed.
const skillsKept = 5 * time.Second

// RefreshSkills has the server listed anew if its skills were listed some time ago, and reports
// whether they were.
func (e *Endpoint) RefreshSkills() bool {
	e.examining.Lock()
	stale := !e.skillsAt.IsZero() && time.Since(e.skillsAt) > skillsKept
	e.examining.Unlock()
	l := e.connection()
	if l == nil || !stale {
		return false
	}
	l.ListsChanged()
	return true
}

// Relist has the server listed again, after the way in which its listing is sanitized has changed.
func (e *Endpoint) Relist() error {
	if l := e.connection(); l != nil {
		l.ListsChanged()
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
	return l.Fresh(one)
}

// Announced reports whether the server has announced what is not listed yet.
func (e *Endpoint) Announced() bool {
	l := e.connection()
	return l != nil && l.Announced()
}

// Relisted waits, within ctx, until what the server has announced so far is listed:
// a call is made of the definition that the server has now, not of the one that it
// had until it said otherwise.
func (e *Endpoint) Relisted(ctx context.Context) {
	if l := e.connection(); l != nil {
		l.Relisted(ctx)
	}
}
