package fair

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Queue hands out what is bounded. A call takes of several bounds at once, and waits
// until it may have something of all of them. Bounds have names of type R.
//
// Callers take turns, and the lanes of a caller, such as its sessions, take turns in what comes
// to it. A caller that makes ten thousand calls at once gets what others leave.
//
// Use it from several goroutines.
type Queue[K, R comparable] struct {
	mu     sync.Mutex
	most   int // how many calls wait at most
	bounds map[R]*Bound[K]
	last   [maxNeeds]struct { // those of the last call
		of    R
		bound *Bound[K]
	}
	swept   int   // how many bounds there were after the last sweep
	turn    int64 // of the call that came in last
	waiting []*waiter[K, R]
}

// maxNeeds is how many bounds a call takes of at most.
const maxNeeds = 2

// A Demand is what a call takes. Its zero value is nothing.
type Demand[K, R comparable] struct {
	Caller K
	Lane   string // of the caller
	needs  [maxNeeds]need[K, R]
	n      int
}

type need[K, R comparable] struct {
	of    R
	most  int64
	n     int64
	bound *Bound[K] // nil until the queue has the demand
}

// Add adds n of a bound that has most.
func (d *Demand[K, R]) Add(of R, most, n int64) {
	d.needs[d.n] = need[K, R]{of: of, most: most, n: n}
	d.n++
}

// Empty reports whether the demand is of nothing.
func (d *Demand[K, R]) Empty() bool { return d.n == 0 }

// Full says which bound has nothing left for a caller. It is an error.
type Full[R comparable] struct {
	Of   R
	Most int64
}

// Error implements error.
func (f *Full[R]) Error() string { return "nothing is left of a limit" }

type waiter[K, R comparable] struct {
	*Demand[K, R]
	// turn is how often it is the caller's turn before it. The first waiter of each caller comes
	// before the second of any, and so on (start-time fair queueing, Goyal et al., 1996, with
	// calls of one size). It is 0 of a call that comes back.
	turn  int64
	nth   int64         // its turn among the lanes of the caller
	ready chan struct{} // closed when the waiter has what it needs, or no is set
	no    error
}

// NewQueue returns a queue in which at most so many calls wait.
func NewQueue[K, R comparable](waiting int) *Queue[K, R] {
	return &Queue[K, R]{most: waiting, bounds: make(map[R]*Bound[K])}
}

// Try takes what a call needs if it may have that now.
func (q *Queue[K, R]) Try(d *Demand[K, R]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.find(d, false)
	return q.take(d) == nil
}

// Take takes what a call needs, and waits for it as long as wait; with a negative one it does not
// wait. The last call of a full queue is refused for one whose turn is earlier. The error is a
// [*Full], or that of ctx.
func (q *Queue[K, R]) Take(ctx context.Context, d *Demand[K, R], wait time.Duration) error {
	q.mu.Lock()
	q.find(d, false)
	if len(q.waiting) == 0 && q.take(d) == nil {
		q.mu.Unlock()
		return nil
	}
	w := &waiter[K, R]{Demand: d, ready: make(chan struct{})}
	q.enqueue(w)
	q.admit() // those before it may wait for what it does not need
	if wait < 0 {
		q.refuse(w)
	} else if n := len(q.waiting); n > q.most {
		q.refuse(q.waiting[n-1])
	}
	q.mu.Unlock()
	return q.await(ctx, w, wait)
}

// Wait is [Queue.Take] for a call that is under way: it waits until ctx ends, however many wait.
func (q *Queue[K, R]) Wait(ctx context.Context, d *Demand[K, R]) error {
	q.mu.Lock()
	q.find(d, false)
	w := &waiter[K, R]{Demand: d, ready: make(chan struct{})}
	q.enqueue(w)
	q.admit()
	q.mu.Unlock()
	return q.await(ctx, w, 0)
}

// Again is Wait for a call that has given back what it needs. It comes before those that wait for
// the first time, and waits no longer than wait, if that is not zero.
func (q *Queue[K, R]) Again(ctx context.Context, d *Demand[K, R], wait time.Duration) error {
	q.mu.Lock()
	q.find(d, true)
	if q.take(d) == nil {
		q.mu.Unlock()
		return nil
	}
	w := &waiter[K, R]{Demand: d, ready: make(chan struct{})}
	q.insert(w)
	q.mu.Unlock()
	return q.await(ctx, w, wait)
}

func (q *Queue[K, R]) await(ctx context.Context, w *waiter[K, R], wait time.Duration) error {
	var late <-chan time.Time
	if wait > 0 {
		timeout := time.NewTimer(wait)
		defer timeout.Stop()
		late = timeout.C
	}
	select {
	case <-w.ready:
		return w.no
	case <-ctx.Done():
	case <-late:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-w.ready: // at the last moment
		return w.no
	default:
	}
	i := slices.Index(q.waiting, w)
	q.waiting = slices.Delete(q.waiting, i, i+1)
	err := ctx.Err()
	if err == nil {
		err = q.why(w.Demand)
	}
	q.admit() // it may have stood before one that needs less
	return err
}

// Give gives back what a call has taken.
func (q *Queue[K, R]) Give(d *Demand[K, R]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range d.needs[:d.n] {
		d.needs[i].bound.Give(d.Caller, d.needs[i].n)
	}
	q.admit()
}

// Change has another number of a bound. What is taken stays taken.
func (q *Queue[K, R]) Change(of R, most int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		for i := range w.needs[:w.n] {
			if n := &w.needs[i]; n.of == of {
				n.most, n.bound.Most = most, most
			}
		}
	}
	q.admit()
}

// State returns how much is taken of a bound, and how many calls wait.
func (q *Queue[K, R]) State(of R) (taken, waiting int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.bounds[of]; b != nil {
		taken = b.taken
	}
	return taken, int64(len(q.waiting))
}

// find finds the bounds of a call, and notes that its caller has called. A call that is back may
// know an old number. The caller holds mu, as do those of the methods below.
func (q *Queue[K, R]) find(d *Demand[K, R], back bool) {
	now := time.Now()
	for i := range d.needs[:d.n] {
		n := &d.needs[i]
		if last := &q.last[i]; last.bound != nil && last.of == n.of {
			n.bound = last.bound
		} else {
			n.bound = q.bound(n.of, now)
			last.of, last.bound = n.of, n.bound
		}
		if back && n.bound.Most > 0 {
			n.most = n.bound.Most
		}
		n.bound.Most = n.most
		n.bound.Visit(d.Caller, now)
	}
}

// bound returns the bound of a name.
func (q *Queue[K, R]) bound(of R, now time.Time) *Bound[K] {
	if b := q.bounds[of]; b != nil {
		return b
	}
	q.sweep(now)
	b := new(Bound[K])
	q.bounds[of] = b
	return b
}

// sweep forgets bounds that are as good as new ones, once there are many.
func (q *Queue[K, R]) sweep(now time.Time) {
	if len(q.bounds) < 2*q.swept+64 {
		return
	}
	for of, b := range q.bounds {
		if b.idle(now) && !slices.ContainsFunc(q.waiting, func(w *waiter[K, R]) bool { return w.uses(b) }) {
			delete(q.bounds, of)
		}
	}
	q.swept = len(q.bounds)
	clear(q.last[:])
}

func (d *Demand[K, R]) uses(b *Bound[K]) bool {
	return slices.ContainsFunc(d.needs[:d.n], func(n need[K, R]) bool { return n.bound == b })
}

// take takes what a call needs, or returns what it may not have.
func (q *Queue[K, R]) take(d *Demand[K, R]) *need[K, R] {
	for i := range d.needs[:d.n] {
		if n := &d.needs[i]; !n.bound.May(d.Caller, n.n) {
			return n
		}
	}
	for i := range d.needs[:d.n] {
		d.needs[i].bound.Take(d.Caller, d.needs[i].n)
	}
	return nil
}

// why returns why a call gets nothing, which may be for those before it.
func (q *Queue[K, R]) why(d *Demand[K, R]) error {
	for i := range d.needs[:d.n] {
		if n := &d.needs[i]; !n.bound.May(d.Caller, n.n) {
			return &Full[R]{n.of, n.most}
		}
	}
	return &Full[R]{d.needs[0].of, d.needs[0].most}
}

// enqueue lets w wait where its turn is.
func (q *Queue[K, R]) enqueue(w *waiter[K, R]) {
	w.turn = q.turn + 1
	for _, o := range q.waiting {
		if o.Caller != w.Caller || o.turn == 0 {
			continue
		}
		w.turn = o.turn + 1
		if w.nth == 0 {
			w.nth = o.nth
		}
		if o.Lane == w.Lane {
			w.nth = o.nth + 1
		}
	}
	w.nth = max(w.nth, 1)
	i := q.insert(w)
	for j := i - 1; j >= 0; j-- { // the caller's lanes take turns in its turns
		o := q.waiting[j]
		if o.Caller != w.Caller || o.turn == 0 {
			continue
		}
		if o.nth <= w.nth {
			break
		}
		q.waiting[i], q.waiting[j] = o, w
		o.turn, w.turn = w.turn, o.turn
		i = j
	}
}

// refuse ends the wait of w, if it still waits and does not come back.
func (q *Queue[K, R]) refuse(w *waiter[K, R]) {
	i := slices.Index(q.waiting, w)
	if i < 0 || w.turn == 0 {
		return
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	w.no = q.why(w.Demand)
	close(w.ready)
}

// insert puts w behind those whose turn is not later.
func (q *Queue[K, R]) insert(w *waiter[K, R]) (at int) {
	at = len(q.waiting)
	for at > 0 && q.waiting[at-1].turn > w.turn {
		at--
	}
	q.waiting = slices.Insert(q.waiting, at, w)
	return at
}

// admit gives those who wait what they need, in order. A call that waits for what is left of its
// first bound lets only those pass that need another one first, or whose callers have nothing.
func (q *Queue[K, R]) admit() {
	var full []*Bound[K]
	q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter[K, R]) bool {
		first := &w.needs[0]
		if slices.Contains(full, first.bound) && !first.bound.New(w.Caller) {
			return false
		}
		if q.take(w.Demand) != nil {
			if !first.bound.Fits(first.n) {
				full = append(full, first.bound)
			}
			return false
		}
		q.turn = max(q.turn, w.turn)
		close(w.ready)
		return true
	})
}
