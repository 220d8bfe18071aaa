package approval

import "time"

// The bounds, for tests.
const (
	MaxOpen      = maxOpen
	MaxOpenOfOne = maxOpenOfOne
	MaxBytes     = maxBytes
	MaxClosed    = maxClosed
)

// NewWithClock returns a queue by whose clocks the time is what a test says.
func NewWithClock(o Options, wall func() time.Time, elapsed func() time.Duration) (*Queue, error) {
	return newQueue(o, clock{wall, elapsed})
}

// Kept returns how many requests are kept, answered ones included.
func (q *Queue) Kept() int {
	m := q.store.(*memory)
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byID)
}
