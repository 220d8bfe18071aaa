package policy

import "sync"

// cache keeps what has been derived lately. It holds at most twice half: when
// the young half is full it becomes the old one, and what the old one held is
// forgotten unless it is used again. That is close to forgetting what was used
// least lately, without a list. Who reads what was used lately waits for nobody but who
// adds something.
type cache[K comparable, V any] struct {
	half int

	mu         sync.RWMutex
	young, old map[K]V
}

func newCache[K comparable, V any](half int) *cache[K, V] {
	return &cache[K, V]{half: half, young: map[K]V{}}
}

func (c *cache[K, V]) get(k K) (V, bool) {
	c.mu.RLock()
	v, young := c.young[k]
	old := false
	if !young {
		v, old = c.old[k]
	}
	c.mu.RUnlock()
	if old {
		c.put(k, v)
	}
	return v, young || old
}

func (c *cache[K, V]) put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(k, v)
}

// keep adds to the young half. Callers hold mu.
func (c *cache[K, V]) keep(k K, v V) {
	if len(c.young) >= c.half {
		c.old, c.young = c.young, make(map[K]V, c.half)
	}
	c.young[k] = v
}
