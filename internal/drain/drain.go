package drain

import (
	"context"
	"sync"
)

// A Counter counts what is under way until it is closed: then nothing more begins. The
// zero Counter is open, and counts nothing. Use it from several goroutines.
type Counter struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // nil while it is open; closed when the last has ended
}

// Begin counts one, until End, or reports that no more may begin.
func (c *Counter) Begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.empty != nil {
		return false
	}
	c.n++
	return true
}

// Split counts one more, until another End, within one that has begun: also once the
// counter is closed.
func (c *Counter) Split() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		panic("drain: nothing is under way that could be split")
	}
	c.n++
}

// End ends one that has begun.
func (c *Counter) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n < 0 {
		panic("drain: more ends than beginnings")
	}
	if c.n == 0 && c.empty != nil {
		close(c.empty)
	}
}

// Count is how many have begun and not ended.
func (c *Counter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Close lets nothing more begin, and returns what is closed when nothing is under way. It
// may be called more than once.
func (c *Counter) Close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.empty == nil {
		c.empty = make(chan struct{})
		if c.n == 0 {
			close(c.empty)
		}
	}
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
