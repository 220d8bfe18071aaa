package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A Common is a [Shared] in the memory of one process. The zero Common has no sessions.
type Common struct {
	mu         sync.Mutex
	generation uint64
	all        map[gate.SessionKey]*common
}

type common struct {
	Known
	used time.Time
}

var _ Shared = (*Common)(nil)

// Change raises the generation.
func (c *Common) Change() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
}

// find returns what is known of a session, nil if that is nothing. Callers hold mu.
func (c *Common) find(k gate.SessionKey, ttl time.Duration) *common {
	e := c.all[k]
	if e != nil && time.Since(e.used) >= ttl {
		delete(c.all, k)
		return nil
	}
	return e
}

func (c *Common) state(k gate.SessionKey, e *common) Known {
	n := Known{Key: k, Generation: c.generation}
	if e != nil {
		n.Labels, n.Top, n.Raised, n.Readers, n.Resets = e.Labels, e.Top, maps.Clone(e.Raised), slices.Clone(e.Readers), e.Resets
	}
	return n
}

// Read implements [Shared].
func (c *Common) Read(_ context.Context, k gate.SessionKey, ttl time.Duration) (Known, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(k, ttl)
	if e != nil {
		e.used = time.Now()
	}
	return c.state(k, e), nil
}

// Raise implements [Shared].
func (c *Common) Raise(_ context.Context, k gate.SessionKey, ttl time.Duration, r Rise) (Known, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(k, ttl)
	if e == nil {
		e = &common{Known: Known{Key: k, Raised: map[string]string{}}}
		if c.all == nil {
			c.all = map[gate.SessionKey]*common{}
		}
		c.all[k] = e
	}
	e.used = time.Now()
	for _, name := range r.Labels {
		if !e.Labels.Cover(gate.Labels{name}) {
			e.Raised[name] = r.Call
		}
	}
	if r.Top && !e.Top {
		e.Raised[""] = r.Call
	}
	e.Labels, e.Top = e.Labels.Join(r.Labels), e.Top || r.Top
	if !slices.Contains(e.Readers, r.Reader) {
		e.Readers = append(e.Readers, r.Reader)
	}
	return c.state(k, e), nil
}

// Reset implements [Shared].
func (c *Common) Reset(_ context.Context, k gate.SessionKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	if e := c.all[k]; e != nil {
		e.Known = Known{Key: k, Raised: map[string]string{}, Resets: e.Resets + 1}
		e.used = time.Now()
	}
	return nil
}

// Take implements [Shared]: one process has no homes.
func (c *Common) Take(context.Context, Known) ([]byte, error) { return nil, nil }

// Restore implements [Shared]: one process loses nothing.
func (c *Common) Restore(context.Context, func(context.Context) (bool, error)) error { return nil }

// All implements [Shared].
func (c *Common) All(_ context.Context, ttl time.Duration, reset bool) (all []Known, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.all {
		if e := c.find(k, ttl); e != nil && (!reset || e.Resets > 0) {
			all = append(all, c.state(k, e))
		}
	}
	return all, nil
}
