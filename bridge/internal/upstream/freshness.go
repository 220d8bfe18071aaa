package upstream

import (
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Servers of [mcp.Stateless] say with each listing for how long it can be kept (MCP
// 2026-07-28, server/utilities, caching: ttlMs). The gateway's own listings are good for no
// longer, and one that can be kept no more is made anew, unless its server tells by itself
// what changes.

const (
	// relistHinted bounds how often a server is listed because its listing may be stale,
	// and maxHint for how long a listing is kept, whatever the server says.
	relistHinted = 5 * time.Second
	maxHint      = time.Hour
)

// A hint is how long the listing of a server can be kept.
type hint struct {
	given bool // by every page
	ttl   time.Duration
}

// with is the hint of a listing with one more page.
func (h hint) with(page gate.Doc, first bool) hint {
	n, ok := mcp.Integer(page.Get("ttlMs").String())
	if !ok || !first && !h.given {
		return hint{}
	}
	ttl := time.Duration(max(0, min(n, maxHint.Milliseconds()))) * time.Millisecond
	if !first {
		ttl = min(ttl, h.ttl)
	}
	return hint{true, ttl}
}

// freshness is for how long what the server has listed can be kept.
type freshness struct {
	at    time.Time             // when the listing began
	hints map[gate.Feature]hint // of what it has listed; nil of a server that gives none
	over  chan struct{}         // closed when there is another listing
}

// relistsAfter returns when a listing is to be made anew; 0 if it is not by itself.
func (l *link) relistsAfter(hints map[gate.Feature]hint) (after time.Duration) {
	for one, h := range hints {
		if h.ttl > 0 && !l.tellsOf(one) && (after == 0 || h.ttl < after) {
			after = max(h.ttl, relistHinted)
		}
	}
	return after
}

// keeps notes how long a listing can be kept, and has it made anew when that is over. A
// listing that must not be kept at all is made anew when somebody asks: see
// [Endpoint.Refresh].
func (e *Endpoint) keeps(l *link, at time.Time, hints map[gate.Feature]hint) {
	if !l.modern() {
		return
	}
	f := freshness{at, hints, make(chan struct{})}
	l.news.mu.Lock()
	if l.news.fresh.over != nil {
		close(l.news.fresh.over)
	}
	l.news.fresh = f
	l.news.mu.Unlock()
	after := l.relistsAfter(hints)
	if after == 0 {
		return
	}
	e.wg.Go(func() {
		again := time.NewTimer(after)
		defer again.Stop()
		select {
		case <-again.C:
			l.listsChanged()
		case <-f.over:
		case <-l.ended:
		}
	})
}

func (n *news) freshness() freshness {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fresh
}

// tellsOf reports whether the server says by itself when the list of a feature changes.
func (l *link) tellsOf(one gate.Feature) bool {
	list := "resources"
	switch one {
	case gate.FeatureTool:
		list = "tools"
	case gate.FeaturePrompt:
		list = "prompts"
	}
	return l.capabilities.Get(list).Get("listChanged").True()
}

// stale reports whether there is a listing that must not be kept, and is to be made anew.
func (l *link) stale() bool {
	f := l.news.freshness()
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
	now := l.news.freshness()
	h, lists := now.hints[one]
	if now.hints == nil || lists && !h.given {
		return 0, true
	}
	return h.ttl - time.Since(now.at), lists
}
