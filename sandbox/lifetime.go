package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A lifetime is how long a call may take, and its context: it ends with its parent, at its deadline,
// or when the call is over. The deadline needs no timer as long as nothing waits for it.
type lifetime struct {
	parent   context.Context
	started  time.Time
	timeout  time.Duration
	deadline time.Time
	serving  bool // the guest is a server, whose deadline moves
	over     atomic.Bool
	timer    struct {
		mu     sync.Mutex
		ctx    context.Context
		at     time.Time // when it ends
		cancel context.CancelFunc
	}
}

// begin starts the time of the call.
func (l *lifetime) begin() {
	l.started = time.Now()
	l.beginTime()
}

// beginTime sets when the call has to end.
func (l *lifetime) beginTime() {
	l.deadline = time.Now().Add(l.timeout)
	if at, ok := l.parent.Deadline(); ok && !l.serving && at.Before(l.deadline) {
		l.deadline = at
	}
}

// expire ends what was made of the context.
func (l *lifetime) expire() {
	l.over.Store(true)
	if l.timer.cancel != nil {
		l.timer.cancel()
	}
}

// Deadline implements [context.Context].
func (l *lifetime) Deadline() (time.Time, bool) {
	if l.serving {
		return l.parent.Deadline()
	}
	return l.deadline, true
}

// Err implements [context.Context]. It says the truth also before a timer rings.
func (l *lifetime) Err() error { return l.endedAt(l.now()) }

// now is [time.Now] at half its price: it does not ask for the time of day.
func (l *lifetime) now() time.Time { return l.started.Add(time.Since(l.started)) }

// endedAt is why the call has ended by now.
func (l *lifetime) endedAt(now time.Time) error {
	if err := l.parent.Err(); err != nil {
		return err
	}
	if !now.Before(l.deadline) {
		return context.DeadlineExceeded
	}
	if l.over.Load() { // a host may have made contexts of it that outlive it
		return context.Canceled
	}
	return nil
}

// Done implements [context.Context]. The timer starts only when something waits for it.
func (l *lifetime) Done() <-chan struct{} {
	if l.serving {
		return l.parent.Done()
	}
	t := &l.timer
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil || !t.at.Equal(l.deadline) { // which can have begun anew
		if t.cancel != nil {
			t.cancel()
		}
		t.at = l.deadline
		t.ctx, t.cancel = context.WithDeadline(l.parent, t.at)
	}
	return t.ctx.Done()
}

// ended is ctx.Err(), also before the context's timer rings.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
