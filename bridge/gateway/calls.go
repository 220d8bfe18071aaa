package gateway

import (
	"context"
	"errors"
	"sync"
)

// ErrDraining says that a gateway takes no more calls.
var ErrDraining = errors.New("the gateway is shutting down")

// calls counts the calls that are under way.
type calls struct {
	under sync.WaitGroup

	mu      sync.Mutex
	refused bool // no more begin, so that under can be waited for
}

func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.refused {
		c.under.Add(1)
	}
	return !c.refused
}

func (c *calls) end() { c.under.Done() }

func (c *calls) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
}

// wait waits for the calls that began before refuse, or for ctx.
func (c *calls) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { // ends with the last call, each of which has a deadline
		c.under.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
