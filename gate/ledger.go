package gate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate/step"
)

// Bounds of what the host calls of one call put into the log. A guest that could
// write any number of records would turn older evidence out of it.
const (
	hostBurst = 1000 // records that a call may write at once
	hostRate  = 100  // and each second from then on
	// countAfter is how long host calls are counted before a record has their number; the end of
	// the call does not wait for it.
	countAfter = time.Second
)

// tooMany is the error of a guest that writes too many records.
var tooMany = fmt.Sprintf("more host calls than are recorded for one call: %d different ones, and %d a second after that", hostBurst, hostRate)

// A ledger keeps the records of the host calls of one call. Equal ones in a row are one record,
// written before the first of them is done, and one that says how many followed. A host call that
// would need more records than a call may write is refused, and counted.
type ledger struct {
	mu      sync.Mutex
	spent   float64 // of hostBurst, as of the time of the last
	at      time.Time
	last    *nested // the last one that has a record
	repeats tally   // of last
	refused tally   // because there is no room
	closed  bool    // the call has ended: nothing is counted any more
}

// A tally counts equal host calls that are in no record yet.
type tally struct {
	last  *nested
	n     uint64
	since time.Time // of the first
}

// admits reports whether a host call may be recorded. One that equals the last
// takes no room yet: if it ends like it, it is counted.
func (l *ledger) admits(n *nested) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && n.asksLike(l.last) {
		return true
	}
	n.paid = l.pay(n.rec.Time)
	return n.paid
}

func (l *ledger) pay(now time.Time) bool {
	if past := now.Sub(l.at); past > 0 {
		l.spent, l.at = max(0, l.spent-past.Seconds()*hostRate), now
	}
	if l.spent > hostBurst-1 {
		return false
	}
	l.spent++
	return true
}

// keep records or counts a host call that was decided on, with err as its outcome,
// and returns what becomes of it.
func (l *ledger) keep(ctx context.Context, n *nested, err error) error {
	n.close(Code(err), err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && !l.closed && n.endsLike(l.last) {
		return l.repeats.add(ctx, n, err)
	}
	if !n.paid && !l.pay(n.rec.Time) {
		return l.refuse(ctx, n)
	}
	if rerr := l.repeats.tell(ctx); rerr != nil { // of those before it
		err = n.unrecorded(rerr, err)
		n.close(Code(err), err)
	}
	if rerr := n.record(ctx, &n.rec); rerr != nil {
		l.last = nil
		return n.unrecorded(rerr, err)
	}
	l.last = n
	return err
}

// refuses refuses a host call for which there is no room.
func (l *ledger) refuses(ctx context.Context, n *nested) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuse(ctx, n)
}

func (l *ledger) refuse(ctx context.Context, n *nested) error {
	n.next(step.Limit)
	r := n.refuse(step.Limit, tooMany, nil)
	r.RetryAfter = time.Second / hostRate
	n.close(r.Code(), r)
	if l.closed {
		return r
	}
	return l.refused.add(ctx, n, r)
}

// end has what was counted recorded. Nothing is counted afterwards.
func (l *ledger) end(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if err := l.repeats.tell(ctx); err != nil {
		return err
	}
	return l.refused.tell(ctx)
}

// add counts a host call, and writes a record when others were counted for long enough. It returns
// what becomes of the host call, whose outcome is err.
func (t *tally) add(ctx context.Context, n *nested, err error) error {
	if t.n == 0 {
		t.since = n.rec.Time
	}
	t.n++
	t.last = n
	if n.rec.Time.Sub(t.since) < countAfter {
		return err
	}
	if rerr := t.tell(ctx); rerr != nil {
		return n.unrecorded(rerr, err)
	}
	return err
}

// tell records what was counted.
func (t *tally) tell(ctx context.Context) error {
	if t.n == 0 {
		return nil
	}
	t.last.rec.Count = t.n
	if err := t.last.record(ctx, &t.last.rec); err != nil {
		return err
	}
	*t = tally{}
	return nil
}

// asksLike reports whether two host calls of one call are for the same.
func (n *nested) asksLike(m *nested) bool {
	return n.rec.Call.Action == m.rec.Call.Action && n.rec.Call.Args.Digest() == m.rec.Call.Args.Digest()
}

// endsLike reports whether they also ended in the same way, by the same policy in
// the same state of the session.
func (n *nested) endsLike(m *nested) bool {
	a, b := &n.rec, &m.rec
	return n.asksLike(m) && a.Code == b.Code && a.Reason == b.Reason &&
		a.Decision.Effect == b.Decision.Effect && a.Decision.Revision == b.Decision.Revision && slices.Equal(a.Decision.Reasons, b.Decision.Reasons) &&
		a.Session.Top == b.Session.Top && slices.Equal(a.Session.Labels, b.Session.Labels) && slices.Equal(a.After, b.After)
}
