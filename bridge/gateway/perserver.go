package gateway

import (
	"maps"
	"sync"
	"sync/atomic"
)

// perServer has one setting of the operator for each server, which may change while calls run. The
// zero value of T is no setting.
type perServer[T comparable] struct {
	mu sync.Mutex // for changes
	by atomic.Pointer[map[string]T]
}

func newPerServer[T comparable](by map[string]T) *perServer[T] {
	p := new(perServer[T])
	by = maps.Clone(by)
	p.by.Store(&by)
	return p
}

func (p *perServer[T]) get(id string) (T, bool) {
	v, ok := (*p.by.Load())[id]
	return v, ok
}

func (p *perServer[T]) set(id string, v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := maps.Clone(*p.by.Load())
	if next == nil {
		next = make(map[string]T)
	}
	next[id] = v
	if zero := *new(T); v == zero {
		delete(next, id)
	}
	p.by.Store(&next)
}
