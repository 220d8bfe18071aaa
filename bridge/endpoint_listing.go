package bridge

import (
	"context"
	"time"
)

const (
	// relistAfter gathers the announcements of a server that adds its tools one
	// by one; relistEvery bounds what one that never stops can make us do.
	relistAfter = 50 * time.Millisecond
	relistEvery = time.Second
)

// watch keeps the listing up to date until the connection ends.
func (e *Endpoint) watch(ctx context.Context, l *link) {
	var last time.Time
	for {
		select {
		case <-l.again:
			announced := time.Now()
			select {
			case <-time.After(max(relistAfter, relistEvery-time.Since(last))):
			case <-l.wanted:
			case <-l.ended:
				return
			}
			select {
			case <-l.again:
			default:
			}
			l.news.begin()
			e.relist(ctx, l, announced)
			l.news.end()
			last = time.Now()
		case <-l.ended:
			return
		}
	}
}

func (e *Endpoint) relist(ctx context.Context, l *link, announced time.Time) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.ConnectTimeout)
	defer cancel()
	tools, err := e.list(ctx, l)
	if err != nil {
		e.cfg.Log.Warn("listing failed", "error", err)
		return // the old listing stays
	}
	e.observes(e.declaration(l, tools, announced))
	e.mu.Lock()
	other := e.link == l && !tools.same(e.tools)
	if other {
		e.tools = tools
	}
	e.mu.Unlock()
	if other {
		e.changed()
	}
}
