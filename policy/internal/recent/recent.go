package recent

import (
	"iter"
	"sync"
)

// A Cache keeps what has been derived lately. [New] makes one, which may be used from several
// goroutines. It holds at most twice half: when the young half is full it becomes the old one, and
// what the old one held is forgotten unless it is used again. That is close to forgetting what was
// used least lately, without a list. Reads of what was used lately wait only for a Put.
type Cache[K comparable, V any] struct {
	half int

	mu         sync.RWMutex
	young, old map[K]V
}

// New returns an empty cache whose halves have room for so many each.
func New[K comparable, V any](half int) *Cache[K, V] {
	return &Cache[K, V]{half: half, young: map[K]V{}}
}

// Get returns what is kept for a key, and whether something is.
func (c *Cache[K, V]) Get(k K) (V, bool) {
	c.mu.RLock()
	v, young := c.young[k]
	old := false
	if !young {
		v, old = c.old[k]
	}
	c.mu.RUnlock()
	if old {
		c.Put(k, v)
	}
	return v, young || old
}

// Put keeps a value for a key.
func (c *Cache[K, V]) Put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.half {
		c.old, c.young = c.young, make(map[K]V, c.half)
	}
	c.young[k] = v
}

// All gives what is kept, in no order. A Put waits meanwhile.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		c.mu.RLock()
		defer c.mu.RUnlock()
		for _, half := range []map[K]V{c.young, c.old} {
			for k, v := range half {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}
