package app

import (
	"sync"
	"time"
)

// startTime bounds how long another process may take to build its gateway, which compiles the
// embedded tools when it is the first ever; and how long its first client may take to come.
const startTime = 30 * time.Second

// clients counts who uses a gateway that lives for them alone.
type clients struct {
	last func() // called when the last one has left
	came func() // called when an MCP client has entered

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
