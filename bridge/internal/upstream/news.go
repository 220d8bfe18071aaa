package upstream

import (
	"context"
	"sync"
)

// news is what a server has announced of its tools and the gateway has not listed
// yet. The zero news is none.
type news struct {
	mu   sync.Mutex
	due  chan struct{} // closed with the end of the next listing; nil if there is none to wait for
	more bool          // announced since the listing under way began

	fresh freshness // of the last listing
}

func (n *news) announce() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.more = true
	if n.due == nil {
		n.due = make(chan struct{})
	}
}

// begin says that a listing begins, and end that it has ended.
func (n *news) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.more = false
}

func (n *news) end() {
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

func (n *news) waiting() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.due
}

// Announced reports whether the server has announced what is not listed yet.
func (e *Endpoint) Announced() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.link != nil && e.link.news.waiting() != nil
}

// Relisted waits, within ctx, until what the server has announced so far is listed:
// a call is made of the definition that the server has now, not of the one that it
// had until it said otherwise.
func (e *Endpoint) Relisted(ctx context.Context) {
	e.mu.Lock()
	l := e.link
	e.mu.Unlock()
	if l == nil {
		return
	}
	for range 2 { // the listing under way may have begun before the announcement
		due := l.news.waiting()
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
