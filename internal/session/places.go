package session

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/limit"
)

// What limits on calls at once are of.
const (
	ofSession   = "this client"
	ofPrincipal = "this principal"
	ofServer    = "the server"
	ofTool      = "the tool"
)

// ofRelays says which calls are meant if it is not all of them.
const ofRelays = " to tools that carry out others"

// room is what has places of its own among all places.
type room struct {
	of string
	gate.Owner
	name string
}

// demand is what a call takes: of all places, and of those of each room.
type demand struct {
	from   *places
	what   string // which calls have these places; "" for most
	n      int64
	who    room // the session, with which others take turns
	shares []share
}

type share struct {
	room
	n    int64
	most int64 // places in the room
}

// within adds n places of a room that has so many, if it has a limit.
func (d *demand) within(r room, most int, n int64) {
	if most <= 0 || r.name == "" && (r.of == ofServer || r.of == ofTool) {
		return
	}
	for i := range d.shares {
		if d.shares[i].room == r {
			d.shares[i].n += n
			return
		}
	}
	d.shares = append(d.shares, share{r, n, int64(most)})
}

func busy(whose, what string, most int64) *limit.Busy {
	return &limit.Busy{What: fmt.Sprintf("%s has as many calls under way%s as it may have at once, which is %d", whose, what, most)}
}

// places are the places for calls, and the queue for them.
type places struct {
	most  int64
	queue int // how many wait at most

	mu      sync.Mutex
	taken   int64
	inRoom  map[room]int64 // taken, of those with a limit; none that is zero
	turn    int64          // of who came in last
	waiting *list.List     // of *waiter, in the order of their turns
}

type waiter struct {
	demand
	// turn is how often it is the session's turn before it. The first waiter of each
	// session comes before the second of any, and so on (start-time fair queueing,
	// Goyal et al., 1996, with calls of one size). It is 0 of a call that comes back.
	turn  int64
	ready chan struct{} // closed when the waiter has its places, or err is set
	err   error
}

func (p *places) init(most int64, queue int) {
	p.most, p.queue, p.waiting, p.inRoom = most, queue, list.New(), make(map[room]int64)
}

// take takes places, or waits for them. The error is a [*limit.Busy], or ctx.Err().
func (p *places) take(ctx context.Context, d demand, wait time.Duration) error {
	p.mu.Lock()
	if p.waiting.Len() == 0 && p.full(&d) == nil {
		p.occupy(&d)
		p.mu.Unlock()
		return nil
	}
	at := p.enqueue(&waiter{demand: d, ready: make(chan struct{})}, wait)
	if at == nil {
		err := p.whyBusy(&d)
		p.mu.Unlock()
		return err
	}
	p.admit() // those before it may wait for what it does not need
	p.mu.Unlock()

	w := at.Value.(*waiter)
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	case <-timeout.C:
	}
	return p.leave(ctx, at)
}

// enqueue lets w wait where its turn is; nil if it cannot. The last of a full queue
// makes room for one whose turn is earlier. The caller holds mu.
func (p *places) enqueue(w *waiter, wait time.Duration) *list.Element {
	if wait < 0 || p.queue <= 0 {
		return nil
	}
	w.turn = p.turn + 1
	for at := p.waiting.Back(); at != nil; at = at.Prev() {
		if o := at.Value.(*waiter); o.who == w.who && o.turn > 0 {
			w.turn = o.turn + 1
			break
		}
	}
	if last := p.waiting.Back(); p.waiting.Len() >= p.queue {
		o := last.Value.(*waiter)
		if o.turn <= w.turn {
			return nil
		}
		p.waiting.Remove(last)
		o.err = p.whyBusy(&o.demand)
		close(o.ready)
	}
	for at := p.waiting.Back(); at != nil; at = at.Prev() {
		if at.Value.(*waiter).turn <= w.turn {
			return p.waiting.InsertAfter(w, at)
		}
	}
	return p.waiting.PushFront(w)
}

// again is take for a call that has been away. It comes before those that wait for their
// first place, and is refused for want of none: a person has done something for it.
func (p *places) again(ctx context.Context, d demand) error {
	p.mu.Lock()
	if p.full(&d) == nil {
		p.occupy(&d)
		p.mu.Unlock()
		return nil
	}
	w := &waiter{demand: d, ready: make(chan struct{})}
	before := p.waiting.Front()
	for before != nil && before.Value.(*waiter).turn == 0 {
		before = before.Next()
	}
	var at *list.Element
	if before != nil {
		at = p.waiting.InsertBefore(w, before)
	} else {
		at = p.waiting.PushBack(w)
	}
	p.mu.Unlock()
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
		return p.leave(ctx, at)
	}
}

// leave ends the wait of one that gives up, unless it got its places meanwhile.
func (p *places) leave(ctx context.Context, at *list.Element) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := at.Value.(*waiter)
	select {
	case <-w.ready:
		return w.err
	default:
	}
	err := ctx.Err()
	if err == nil {
		err = p.whyBusy(&w.demand)
	}
	p.waiting.Remove(at)
	p.admit() // it may have stood before one that needs less
	return err
}

func (p *places) release(d demand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= d.n
	for _, s := range d.shares {
		if p.inRoom[s.room] -= s.n; p.inRoom[s.room] == 0 {
			delete(p.inRoom, s.room)
		}
	}
	p.admit()
}

// admit gives places to those who wait, in order. Who waits for a room lets others
// pass, who waits for any place does not. Callers hold mu.
func (p *places) admit() {
	for at := p.waiting.Front(); at != nil; {
		w, next := at.Value.(*waiter), at.Next()
		if p.taken+w.n > p.most {
			return
		}
		if p.full(&w.demand) == nil {
			p.occupy(&w.demand)
			p.waiting.Remove(at)
			p.turn = max(p.turn, w.turn)
			close(w.ready)
		}
		at = next
	}
}

func (p *places) occupy(d *demand) {
	p.taken += d.n
	for _, s := range d.shares {
		p.inRoom[s.room] += s.n
	}
}

// full returns which limit d has no place in now, or nil.
func (p *places) full(d *demand) *limit.Busy {
	for i := range d.shares {
		if s := &d.shares[i]; p.inRoom[s.room]+s.n > s.most {
			return busy(s.of, d.what, s.most)
		}
	}
	if p.taken+d.n > p.most {
		return busy("the gateway", d.what, p.most)
	}
	return nil
}

// whyBusy is full for one that is refused, which may be for those before it.
func (p *places) whyBusy(d *demand) *limit.Busy {
	if b := p.full(d); b != nil {
		return b
	}
	return busy("the gateway", d.what, p.most)
}
