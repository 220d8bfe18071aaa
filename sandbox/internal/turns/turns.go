package turns

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/internal/fair"
)

// ErrClosed says that a queue was closed.
var ErrClosed = errors.New("sandbox: the runtime is closed")

// A Queue hands out a few places. Calls that wait for one are served in turn: the modules one
// after the other, and of each module its callers.
//
// Turns alone leave a caller waiting for as long as the calls of others take, so a queue can
// be fair: each module can have one place also if none is free, and callers share the places of
// all modules, and those of each, as package fair says.
type Queue struct {
	waiting atomic.Int32 // how many wait; the rest is guarded by the mutex
	mu      sync.Mutex
	share
	fair  bool
	lanes []*Lane // those in which calls wait, in turn

	closed bool
	empty  chan struct{} // closed once no one holds a place of a closed queue
}

// A Lane is a module's in a queue.
type Lane struct {
	queue *Queue
	share
	callers []*caller // those that wait, in turn
}

// A share is a number of places, and how many are held.
type share struct {
	most, held int
	by         fair.Bound[string] // of a fair queue
}

func newShare(most int) share { return share{most: most, by: fair.Bound[string]{Most: int64(most)}} }

// A caller has calls that wait, the first first.
type caller struct {
	name  string
	waits []*wait
}

type wait struct {
	served chan struct{}
	ok     bool // it has a place, or else the queue is closed
}

// NewQueue returns a queue of some places, which may be fair.
func NewQueue(places int, fair bool) *Queue {
	return &Queue{share: newShare(places), fair: fair, empty: make(chan struct{})}
}

// NewLane returns a module's lane with at most so many places.
func NewLane(q *Queue, most int) *Lane { return &Lane{queue: q, share: newShare(most)} }

// Waiting is how many calls wait for a place.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Held is how many places are held.
func (q *Queue) Held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// Empty is closed once no one holds a place of a closed queue.
func (q *Queue) Empty() <-chan struct{} { return q.empty }

// mayHave reports whether a caller may have a place now.
func (l *Lane) mayHave(name string) bool {
	q := l.queue
	if !q.fair {
		return l.held < l.most && q.held < q.most
	}
	return l.by.May(name, 1) && (q.by.May(name, 1) || l.held == 0 && q.by.Within(name, 1))
}

// take takes a place for a caller.
func (l *Lane) take(name string) {
	q := l.queue
	l.held++
	q.held++
	if q.fair {
		l.by.Take(name, 1)
		q.by.Take(name, 1)
	}
}

// give gives a place of a caller back.
func (l *Lane) give(name string) {
	q := l.queue
	l.held--
	q.held--
	if q.fair {
		l.by.Give(name, 1)
		q.by.Give(name, 1)
	}
}

// Enter waits for a place until ctx ends. A caller that gets one must leave it. Waiter, if it is not
// nil, learns when the call begins to wait.
func (l *Lane) Enter(ctx context.Context, name string, waiter interface{ Waits() }) error {
	q := l.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	if q.fair {
		now := time.Now()
		l.by.Visit(name, now)
		q.by.Visit(name, now)
	}
	if len(l.callers) == 0 && l.mayHave(name) {
		l.take(name)
		q.mu.Unlock()
		return nil
	}
	w := l.join(name)
	if q.fair {
		q.serve() // those before it may wait for more than this caller has
	}
	q.mu.Unlock()
	if waiter != nil {
		waiter.Waits()
	}
	select {
	case <-w.served:
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if !l.quit(name, w) && w.ok { // it was served just now
			l.give(name)
			q.serve()
		}
		return ctx.Err()
	}
	if !w.ok {
		return ErrClosed
	}
	return nil
}

// Leave gives a place of a caller back.
func (l *Lane) Leave(name string) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.give(name)
	l.queue.serve()
}

// join waits behind the caller's other calls. The mutex is held.
func (l *Lane) join(name string) *wait {
	w := &wait{served: make(chan struct{})}
	l.queue.waiting.Add(1)
	i := slices.IndexFunc(l.callers, func(c *caller) bool { return c.name == name })
	if i >= 0 {
		l.callers[i].waits = append(l.callers[i].waits, w)
		return w
	}
	if len(l.callers) == 0 {
		l.queue.lanes = append(l.queue.lanes, l)
	}
	l.callers = append(l.callers, &caller{name, []*wait{w}})
	return w
}

// quit reports whether w still waited, which it does no more. The mutex is held.
func (l *Lane) quit(name string, w *wait) bool {
	i := slices.IndexFunc(l.callers, func(c *caller) bool { return c.name == name })
	if i < 0 {
		return false
	}
	c := l.callers[i]
	at := slices.Index(c.waits, w)
	if at < 0 {
		return false
	}
	l.queue.waiting.Add(-1)
	if c.waits = slices.Delete(c.waits, at, at+1); len(c.waits) == 0 {
		l.callers = slices.Delete(l.callers, i, i+1)
	}
	if len(l.callers) == 0 {
		l.queue.lanes = slices.DeleteFunc(l.queue.lanes, func(o *Lane) bool { return o == l })
	}
	return true
}

// serve gives places to those whose turn it is, as long as there are any. The mutex is
// held.
func (q *Queue) serve() {
	for q.next() {
	}
	if q.closed && q.held == 0 {
		close(q.empty)
	}
}

// next serves the first call of the caller whose turn it is, if any may have a place. Caller
// and lane go to the end of their lines then, if more of them wait.
func (q *Queue) next() bool {
	for i, l := range q.lanes {
		at := slices.IndexFunc(l.callers, func(c *caller) bool { return l.mayHave(c.name) })
		if at < 0 {
			continue
		}
		c := l.callers[at]
		w := c.waits[0]
		c.waits, l.callers = c.waits[1:], slices.Delete(l.callers, at, at+1)
		if len(c.waits) > 0 {
			l.callers = append(l.callers, c)
		}
		q.lanes = slices.Delete(q.lanes, i, i+1)
		if len(l.callers) > 0 {
			q.lanes = append(q.lanes, l)
		}
		l.take(c.name)
		q.waiting.Add(-1)
		w.ok = true
		close(w.served)
		return true
	}
	return false
}

// Close refuses callers that come, and those that wait.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	for _, l := range q.lanes {
		for _, c := range l.callers {
			for _, w := range c.waits {
				close(w.served)
			}
		}
		l.callers = nil
	}
	q.lanes = nil
	q.waiting.Store(0)
	if q.held == 0 {
		close(q.empty)
	}
}

// Processors is how many guests run at once: as many as the program had processors when it
// began. The scheduler cannot interrupt a guest, so a program gives what is no guest one
// more by [runtime.GOMAXPROCS].
var Processors = runtime.GOMAXPROCS(0)

// quantum is for how long a guest runs while others wait. What it takes to give a slot to
// another is a thousandth of it.
const quantum = 2 * time.Millisecond

// A Turn is a guest's, at the slots in which guests run. Only its goroutine uses it.
type Turn struct {
	lane  *Lane
	name  string
	has   bool
	since time.Time // when its quantum began
}

// NewTurn returns a caller's turn in a lane.
func NewTurn(l *Lane, caller string) *Turn { return &Turn{lane: l, name: caller} }

// Caller names whose turn it is.
func (t *Turn) Caller() string { return t.name }

// Since is when the guest last got its slot.
func (t *Turn) Since() time.Time { return t.since }

// Enter waits for a slot until ctx ends.
func (t *Turn) Enter(ctx context.Context) error {
	err := t.lane.Enter(ctx, t.name, nil)
	t.has, t.since = err == nil, time.Now()
	return err
}

// Leave gives the slot back, if the guest has one.
func (t *Turn) Leave() {
	if t.has {
		t.has = false
		t.lane.Leave(t.name)
	}
}

// Pass gives the slot to another guest, if one waits and this one has run for long, and
// waits for the next. Otherwise what else there is to do in this process has its turn:
// the scheduler cannot interrupt a guest.
func (t *Turn) Pass(ctx context.Context, now time.Time) error {
	switch {
	case now.Sub(t.since) < quantum:
		return nil
	case t.lane.queue.waiting.Load() == 0:
		t.since = now
		runtime.Gosched()
		return nil
	}
	t.Leave()
	return t.Enter(ctx)
}
