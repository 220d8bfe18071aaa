package session

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// LimitOptions configure [Limits].
type LimitOptions struct {
	// Concurrent is how many calls may be at upstreams at one time, over the
	// whole gateway. Zero or less means 64.
	Concurrent int
	// Wait is how long a call waits for a place. Zero means 1 s; with a negative
	// one no call waits.
	Wait time.Duration
	// Queue is how many calls wait at most. Zero means four times Concurrent;
	// with a negative one no call waits.
	Queue int
	// Buckets is how many buckets of rates are kept: see [Limits]. Zero or less
	// means 65,536; one takes some 300 bytes.
	Buckets int
}

// Limits bounds how many calls run at once, and how many in a time. Of those that
// wait for a place who waits longest comes first; for a rate nobody waits. Use it
// from several goroutines.
//
// A bucket of a rate that has filled again is as good as none, and makes room for
// another. If all are in use, a call that needs a new one is refused: to forget
// one would be to let its owner begin anew.
type Limits struct {
	o     LimitOptions
	rates *buckets

	mu      sync.Mutex
	taken   int64
	waiting *list.List // of *waiter, the longest waiting one in front
}

type waiter struct {
	n     int64
	ready chan struct{} // closed when the waiter has its places
}

var _ gate.Limiter = (*Limits)(nil)

// NewLimits returns Limits of which nothing is taken.
func NewLimits(o LimitOptions) *Limits {
	if o.Concurrent <= 0 {
		o.Concurrent = 64
	}
	if o.Wait == 0 {
		o.Wait = time.Second
	}
	if o.Queue == 0 {
		o.Queue = 4 * o.Concurrent
	}
	if o.Buckets <= 0 {
		o.Buckets = 1 << 16
	}
	return &Limits{o: o, waiting: list.New(), rates: newBuckets(o.Buckets)}
}

// Take takes places for calls, and tokens of rates. The only limit beside rates is
// [gate.Concurrent]; a charge to another is an error, since nobody would keep it.
// The error wraps [gate.ErrBusy] if there was no place in time, and ctx.Err() if
// ctx ended first; it is a [*gate.OverRate] if a rate is used up. A Release that is
// called again does nothing.
func (l *Limits) Take(ctx context.Context, charges []gate.Charge) (gate.Release, error) {
	var n int64
	rated := false
	for _, c := range charges {
		if c.Rate != nil {
			rated = true
			continue
		}
		if c.Limit != gate.Concurrent {
			return nil, fmt.Errorf("there is no limit %q", c.Limit)
		}
		if c.N <= 0 || c.N > int64(l.o.Concurrent)-n {
			return nil, fmt.Errorf("limit %s: a charge of %d can never be met; the limit is %d", c.Limit, c.N, l.o.Concurrent)
		}
		n += c.N
	}
	var spent []gate.Charge
	if rated {
		var err error
		if spent, err = l.rates.take(charges); err != nil {
			return nil, err
		}
	}
	if n > 0 {
		if err := l.take(ctx, n); err != nil {
			l.rates.giveBack(spent)
			return nil, fmt.Errorf("limit %s of %d: %w", gate.Concurrent, l.o.Concurrent, err)
		}
	}
	var once sync.Once
	return func(bytes int64) {
		once.Do(func() {
			if n > 0 {
				l.release(n)
			}
			l.rates.spend(spent, bytes)
		})
	}, nil
}

func (l *Limits) take(ctx context.Context, n int64) error {
	l.mu.Lock()
	if l.waiting.Len() == 0 && l.taken+n <= int64(l.o.Concurrent) {
		l.taken += n
		l.mu.Unlock()
		return nil
	}
	if l.o.Wait < 0 || l.waiting.Len() >= l.o.Queue {
		l.mu.Unlock()
		return gate.ErrBusy
	}
	w := &waiter{n, make(chan struct{})}
	at := l.waiting.PushBack(w)
	l.mu.Unlock()

	timeout := time.NewTimer(l.o.Wait)
	defer timeout.Stop()
	var err error
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = gate.ErrBusy
	}
	return l.leave(at, err)
}

// leave ends the wait of one that gives up, unless it got its places meanwhile.
func (l *Limits) leave(at *list.Element, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := at.Value.(*waiter)
	select {
	case <-w.ready:
		return nil
	default:
	}
	l.waiting.Remove(at)
	l.admit() // it may have stood before one that needs less
	return err
}

func (l *Limits) release(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= n
	l.admit()
}

// admit gives places to those who wait, in order. Callers hold mu.
func (l *Limits) admit() {
	for at := l.waiting.Front(); at != nil; at = l.waiting.Front() {
		w := at.Value.(*waiter)
		if l.taken+w.n > int64(l.o.Concurrent) {
			return
		}
		l.taken += w.n
		l.waiting.Remove(at)
		close(w.ready)
	}
}
