package pace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// MaxExtended bounds the time of a call whose server keeps saying that it goes on, in
// timeouts (MCP 2025-11-25, basic/lifecycle, "Timeouts": "should always enforce a
// maximum timeout").
const MaxExtended = 10

// ErrLate is the cause of the end of a [Deadline].
var ErrLate = errors.New("the call's time is up")

// A Deadline is the context of one call at a server. It ends when the server was silent for the
// timeout, not counting the time in which it waits for a person.
type Deadline struct {
	context.Context
	Timeout time.Duration
	cancel  context.CancelCauseFunc
	timer   *time.Timer

	mu     sync.Mutex
	most   time.Time // when it ends whatever the server says
	paused time.Time // since when; zero if it is not
}

// NewDeadline begins the time of a call.
func NewDeadline(ctx context.Context, timeout time.Duration) *Deadline {
	d := &Deadline{Timeout: timeout, most: time.Now().Add(MaxExtended * timeout)}
	d.Context, d.cancel = context.WithCancelCause(ctx)
	d.timer = time.AfterFunc(timeout, func() { d.cancel(ErrLate) })
	return d
}

// Extend begins the timeout anew: the server has told how far it is.
func (d *Deadline) Extend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused.IsZero() {
		d.timer.Reset(min(d.Timeout, time.Until(d.most)))
	}
}

// Pause stops the time while the client is asked what the server wants to know.
func (d *Deadline) Pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
	d.paused = time.Now()
}

// Resume begins the timeout anew.
func (d *Deadline) Resume() {
	d.mu.Lock()
	d.most = d.most.Add(time.Since(d.paused))
	d.paused = time.Time{}
	d.mu.Unlock()
	d.Extend()
}

// End frees what the deadline holds.
func (d *Deadline) End() {
	d.timer.Stop()
	d.cancel(nil)
}

// Of makes of err what it is if the time is up, rather than what ending the request
// made of it.
func (d *Deadline) Of(err error) error {
	if err != nil && context.Cause(d.Context) == ErrLate {
		return &LateError{d.Timeout}
	}
	return err
}

// A LateError says that a server did not answer within a timeout.
type LateError struct{ Timeout time.Duration }

func (e *LateError) Error() string {
	return fmt.Sprintf("no answer within %s: %v", e.Timeout, context.DeadlineExceeded)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *LateError) Unwrap() error { return context.DeadlineExceeded }
