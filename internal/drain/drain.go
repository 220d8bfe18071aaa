package drain

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Counter counts what is under way until it is closed: then nothing more begins. The
// zero Counter is open, and counts nothing. Use it from several goroutines, which do not
// wait for each other.
type Counter struct {
	n     atomic.Int64 // two for each that is under way, and closed
	once  sync.Once
	empty chan struct{} // there before closed is set; closed when the last has ended
}

const (
	one    = 2
	closed = 1
)

// Begin counts one, until End, or reports that no more may begin.
func (c *Counter) Begin() bool {
	for {
		n := c.n.Load()
		if n&closed != 0 {
			return false
		}
		if c.n.CompareAndSwap(n, n+one) {
			return true
		}
	}
}

// Split counts one more, until another End, within one that has begun: also once the
// counter is closed.
func (c *Counter) Split() {
	if c.n.Add(one) < 2*one {
		panic("drain: nothing is under way that could be split")
	}
}

// End ends one that has begun.
func (c *Counter) End() {
	switch n := c.n.Add(-one); {
	case n < 0:
		panic("drain: more ends than beginnings")
	case n == closed:
		close(c.empty)
	}
}

// Closed reports whether nothing more may begin.
func (c *Counter) Closed() bool { return c.n.Load()&closed != 0 }

// Count is how many have begun and not ended.
func (c *Counter) Count() int { return int(c.n.Load() / one) }

// Close lets nothing more begin, and returns what is closed when nothing is under way. It
// may be called more than once.
func (c *Counter) Close() <-chan struct{} {
	c.once.Do(func() {
		c.empty = make(chan struct{})
		if c.n.Or(closed) == 0 {
			close(c.empty)
		}
	})
	return c.empty
}

// Drain closes the counter, and waits until nothing is under way, or for ctx. If nothing is, it
// does not matter that ctx has ended.
func (c *Counter) Drain(ctx context.Context) error {
	empty := c.Close()
	select {
	case <-empty:
		return nil
	default:
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
