package link

import (
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// announcements is what a server has announced of its tools and the gateway has not listed
// yet. The zero news is none.
type announcements struct {
	mu   sync.Mutex
	due  chan struct{} // closed with the end of the next listing; nil if there is none to wait for
	more bool          // announced since the listing under way began

	fresh freshness // of the last listing
}

func (n *announcements) announce() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.more = true
	if n.due == nil {
		n.due = make(chan struct{})
	}
}

// begin says that a listing begins, and end that it has ended.
func (n *announcements) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.more = false
}

func (n *announcements) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due != nil {
		close(n.due)
	}
	n.due = nil
	if n.more {
		n.due = make(chan struct{})
	}
}

func (n *announcements) waiting() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.due
}

func (n *announcements) freshness() freshness {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fresh
}

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

// A Hint is how long the listing of a server can be kept.
type Hint struct {
	given bool // by every page
	ttl   time.Duration
	Cut   string // why the listing has not all pages; "" if it has
}

// cut is the Hint of a listing without its last pages.
func (h Hint) cut(why string) Hint {
	h.Cut = why + "; the pages before it are used"
	return h
}

// with is the Hint of a listing with one more page.
func (h Hint) with(page gate.Doc, first bool) Hint {
	n, ok := mcp.Integer(page.Get("ttlMs").String())
	if !ok || !first && !h.given {
		return Hint{}
	}
	ttl := time.Duration(max(0, min(n, maxHint.Milliseconds()))) * time.Millisecond
	if !first {
		ttl = min(ttl, h.ttl)
	}
	return Hint{given: true, ttl: ttl}
}

// freshness is for how long what the server has listed can be kept.
type freshness struct {
	at    time.Time             // when the listing began
	hints map[gate.Feature]Hint // of what it has listed; nil of a server that gives none
	over  chan struct{}         // closed when there is another listing
}
