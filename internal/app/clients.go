package app

import "sync"

// clients counts who uses a gateway that lives for them alone.
type clients struct {
	last func() // called when the last one has left

	mu sync.Mutex
	n  int
}

// enter counts one more; leave is called when it has gone.
func (c *clients) enter() (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return func() {
		c.mu.Lock()
		c.n--
		last := c.n == 0
		c.mu.Unlock()
		if last {
			c.last()
		}
	}
}
