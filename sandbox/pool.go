package sandbox

import (
	"slices"
	"sync"
	"time"
)

// A pool keeps what a call has left for the next. The zero pool keeps nothing.
type pool[T any] struct {
	mu    sync.Mutex
	idle  []T
	since []time.Time // when each was kept
	most  int
}

// take returns what was kept last: it is the likeliest to be in the caches.
func (p *pool[T]) take() (v T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return v, false
	}
	last := len(p.idle) - 1
	v, p.idle[last] = p.idle[last], v
	p.idle, p.since = p.idle[:last], p.since[:last]
	return v, true
}

// keep reports whether the pool has taken v. If not, its owner closes it.
func (p *pool[T]) keep(v T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.most {
		return false
	}
	p.idle, p.since = append(p.idle, v), append(p.since, time.Now())
	return true
}

// drain empties the pool for good.
func (p *pool[T]) drain() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.idle
	p.idle, p.since, p.most = nil, nil, 0
	return all
}

// trim returns what was kept before a time. Its owner closes it.
func (p *pool[T]) trim(before time.Time) []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.since) && p.since[n].Before(before) {
		n++
	}
	old := slices.Clone(p.idle[:n])
	p.idle, p.since = slices.Delete(p.idle, 0, n), slices.Delete(p.since, 0, n)
	return old
}
