package sandbox

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A queue hands out places, of which there are few. Calls that wait for one are served in
// turn: the modules one after the other, and of each module its callers.
//
// Turns alone leave a caller waiting for as long as the calls of others take, so a queue can
// be fair: each module can have one place, and each caller of it one, also if none is free;
// and a caller has at most half of what there is while there are others.
type queue struct {
	waiting atomic.Int32 // how many wait; the rest is guarded by the mutex
	mu      sync.Mutex
	share
	free  int // below zero by what modules and callers have as their first
	fair  bool
	over  int     // by how much lanes have more than their most
	extra int     // places of callers that had none, while there was none
	lanes []*lane // those in which calls wait, in turn

	closed bool
	empty  chan struct{} // closed once nobody holds a place of a closed queue
}

// maxExtra bounds the places of callers that had none.
const maxExtra = 16

// A lane is a module's in a queue.
type lane struct {
	queue *queue
	share
	callers []*caller // who waits, in turn
}

// A share is what callers have of a number of places.
type share struct {
	most   int
	held   int
	by     map[string]int // held, by caller
	called [2]visit       // the last one, and the last of another caller
}

type visit struct {
	caller string
	at     time.Time
}

// visit notes that a caller has called.
func (s *share) visit(name string, now time.Time) {
	if s.called[0].caller != name {
		s.called[1] = s.called[0]
	}
	s.called[0] = visit{name, now}
}

// remembered is for how long a caller that has called leaves room for another.
const remembered = time.Minute

// half reports whether a caller has half of the places, while another has called.
func (s *share) half(name string) bool {
	other := s.called[0]
	if other.caller == name {
		other = s.called[1]
	}
	return s.by[name] >= max(1, s.most/2) && !other.at.IsZero() && time.Since(other.at) < remembered
}

func (s *share) take(name string, n int) {
	if s.by == nil {
		s.by = map[string]int{}
	}
	if s.by[name] += n; s.by[name] == 0 {
		delete(s.by, name)
	}
}

// A caller has calls that wait, the first first.
type caller struct {
	name  string
	waits []*wait
}

type wait struct {
	served chan struct{}
	ok     bool // it has a place, or else the queue is closed
}

func newQueue(places int, fair bool) *queue {
	return &queue{share: share{most: places}, free: places, fair: fair, empty: make(chan struct{})}
}

func newLane(q *queue, most int) *lane { return &lane{queue: q, share: share{most: most}} }

// mayHave reports whether a caller may have a place now.
func (l *lane) mayHave(name string) bool {
	q := l.queue
	if !q.fair {
		return l.held < l.most && q.free > 0
	}
	usual := l.held < l.most && (q.free > 0 || l.held == 0) && !l.half(name) && !q.half(name)
	return usual || l.by[name] == 0 && q.extra < maxExtra
}

// take takes a place for a caller, or gives it back.
func (l *lane) take(name string, n int) {
	q := l.queue
	if q.fair {
		if n > 0 && (l.held >= l.most || q.free <= 0 && l.held > 0) {
			q.extra++
		}
		q.over += max(0, l.held+n-l.most) - max(0, l.held-l.most)
		q.extra = min(q.extra, q.over+max(0, n-q.free))
		l.share.take(name, n)
		q.share.take(name, n)
	}
	l.held += n
	q.held += n
	q.free -= n
}

// enter waits for a place until ctx ends. Whoever gets one must leave it.
func (l *lane) enter(ctx context.Context, name string) error {
	q := l.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errClosed
	}
	if q.fair {
		now := time.Now()
		l.visit(name, now)
		q.visit(name, now)
	}
	if len(l.callers) == 0 && l.mayHave(name) {
		l.take(name, 1)
		q.mu.Unlock()
		return nil
	}
	w := l.join(name)
	if q.fair {
		q.serve() // those before it may wait for more than this caller has
	}
	q.mu.Unlock()
	select {
	case <-w.served:
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if !l.quit(name, w) && w.ok { // it was served just now
			l.take(name, -1)
			q.serve()
		}
		return ctx.Err()
	}
	if !w.ok {
		return errClosed
	}
	return nil
}

// leave gives a place of a caller back.
func (l *lane) leave(name string) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.take(name, -1)
	l.queue.serve()
}

// join waits behind the caller's other calls. The mutex is held.
func (l *lane) join(name string) *wait {
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
func (l *lane) quit(name string, w *wait) bool {
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
		l.queue.lanes = slices.DeleteFunc(l.queue.lanes, func(o *lane) bool { return o == l })
	}
	return true
}

// serve gives places to those whose turn it is, as long as there are any. The mutex is
// held.
func (q *queue) serve() {
	for q.next() {
	}
	if q.closed && q.held == 0 {
		close(q.empty)
	}
}

// next serves the first call of the caller whose turn it is, if any may have a place. Caller
// and lane go to the end of their lines then, if more of them wait.
func (q *queue) next() bool {
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
		l.take(c.name, 1)
		q.waiting.Add(-1)
		w.ok = true
		close(w.served)
		return true
	}
	return false
}

// close refuses whoever comes, and whoever waits.
func (q *queue) close() {
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

// processors is how many guests run at once: as many as the program had processors when it
// began. The scheduler cannot interrupt a guest, so a program gives what is no guest one
// more by [runtime.GOMAXPROCS].
var processors = runtime.GOMAXPROCS(0)

// quantum is for how long a guest runs while others wait. What it takes to give a slot to
// another is a thousandth of it.
const quantum = 2 * time.Millisecond

// A turn is a guest's, at the slots in which guests run. Only its goroutine uses it.
type turn struct {
	lane  *lane
	name  string
	has   bool
	since time.Time // when its quantum began
}

// enter waits for a slot until ctx ends.
func (t *turn) enter(ctx context.Context) error {
	err := t.lane.enter(ctx, t.name)
	t.has, t.since = err == nil, time.Now()
	return err
}

// leave gives the slot back, if the guest has one.
func (t *turn) leave() {
	if t.has {
		t.has = false
		t.lane.leave(t.name)
	}
}

// pass gives the slot to another guest, if one waits and this one has run for long, and
// waits for the next. Otherwise what else there is to do in this process has its turn:
// the scheduler cannot interrupt a guest.
func (t *turn) pass(ctx context.Context, now time.Time) error {
	switch {
	case now.Sub(t.since) < quantum:
		return nil
	case t.lane.queue.waiting.Load() == 0:
		t.since = now
		runtime.Gosched()
		return nil
	}
	t.leave()
	return t.enter(ctx)
}

// A BusyError says that a call ended before its guest began: others of the module, or of
// all, were under way for as long as it could wait.
type BusyError struct {
	Tool   string
	Waited time.Duration
}

func (e *BusyError) Error() string { return "sandbox: tool " + e.Tool + ": " + e.Public() }

// Public returns what a client may read.
func (e *BusyError) Public() string {
	return fmt.Sprintf("too many calls of tools in the sandbox are under way: none ended within %v; try again later", e.Waited)
}

// Code returns the outcome of the call.
func (e *BusyError) Code() string { return "refused_busy" }
