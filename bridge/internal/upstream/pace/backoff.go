package pace

import (
	"context"
	"time"
)

// A Backoff is the bound of the next pause: First, doubled up to Most.
type Backoff struct {
	First, Most time.Duration
	failed      int
}

// Next returns how long the next pause is at most.
func (b *Backoff) Next() time.Duration {
	d := b.First << min(b.failed, 16) // 16 doublings are beyond any most
	b.failed++
	return min(d, b.Most)
}

// Reset begins with First again.
func (b *Backoff) Reset() { b.failed = 0 }

// Sleep waits, and reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}
