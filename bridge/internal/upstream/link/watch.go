package link

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

const (
	// relistAfter gathers the announcements of a server that adds its tools one
	// by one; relistEvery bounds what one that never stops can make us do.
	relistAfter = 50 * time.Millisecond
	relistEvery = time.Second
)

// Watch has the server listed anew when it has announced, at a time, that its lists have
// changed, until the connection ends.
func (l *Link) Watch(relist func(announced time.Time)) {
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
			l.announced.begin()
			relist(announced)
			l.announced.end()
			last = time.Now()
		case <-l.ended:
			return
		}
	}
}

// Announced reports whether the server has announced what is not listed yet.
func (l *Link) Announced() bool { return l.announced.waiting() != nil }

// Relisted waits, within ctx, until what the server has announced so far is listed.
func (l *Link) Relisted(ctx context.Context) {
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

// Refresh has the server listed anew if its listing must not be kept, and reports whether
// it must not.
func (l *Link) Refresh() bool {
	f := l.announced.freshness()
	if time.Since(f.at) < relistHinted {
		return false
	}
	for one, h := range f.hints {
		if h.given && h.ttl == 0 && !l.tellsOf(one) {
			l.ListsChanged()
			return true
		}
	}
	return false
}

// Fresh returns for how much longer what the server lists of a feature can be kept. It is
// false of a server that says how long, and does not list the feature.
func (l *Link) Fresh(one gate.Feature) (left time.Duration, lists bool) {
	now := l.announced.freshness()
	h, lists := now.hints[one]
	if now.hints == nil || lists && !h.given {
		return 0, true
	}
	return h.ttl - time.Since(now.at), lists
}
