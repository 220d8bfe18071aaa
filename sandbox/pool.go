package sandbox

import "sync"

// A pool keeps what a call has left for the next. The zero pool keeps nothing.
type pool[T any] struct {
	mu   sync.Mutex
	idle []T
	most int
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
	p.idle = p.idle[:last]
	return v, true
}

// keep reports whether the pool has taken v. If not, its owner closes it.
func (p *pool[T]) keep(v T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.most {
		return false
	}
	p.idle = append(p.idle, v)
	return true
}

// drain empties the pool for good.
func (p *pool[T]) drain() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.idle
	p.idle, p.most = nil, 0
	return all
}
