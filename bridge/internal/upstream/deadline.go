package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/match"
)

// maxExtended bounds the time of a call whose server keeps saying that it goes on, in
// timeouts (MCP 2025-11-25, basic/lifecycle, "Timeouts": "should always enforce a
// maximum timeout").
const maxExtended = 10

// errLate is the cause of the end of a [deadline].
var errLate = errors.New("the call's time is up")

// A deadline is the context of one call at a server. It ends when the server was silent
// for the timeout, but for the time in which it waits for a person.
type deadline struct {
	context.Context
	timeout time.Duration
	cancel  context.CancelCauseFunc
	timer   *time.Timer

	mu     sync.Mutex
	most   time.Time // when it ends whatever the server says
	paused time.Time // since when; zero if it is not
}

func newDeadline(ctx context.Context, timeout time.Duration) *deadline {
	d := &deadline{timeout: timeout, most: time.Now().Add(maxExtended * timeout)}
	d.Context, d.cancel = context.WithCancelCause(ctx)
	d.timer = time.AfterFunc(timeout, func() { d.cancel(errLate) })
	return d
}

// extend begins the timeout anew: the server has told how far it is.
func (d *deadline) extend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused.IsZero() {
		d.timer.Reset(min(d.timeout, time.Until(d.most)))
	}
}

// pause stops the time while the client is asked what the server wants to know; resume
// begins the timeout anew.
func (d *deadline) pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
	d.paused = time.Now()
}

func (d *deadline) resume() {
	d.mu.Lock()
	d.most = d.most.Add(time.Since(d.paused))
	d.paused = time.Time{}
	d.mu.Unlock()
	d.extend()
}

// end frees what the deadline holds.
func (d *deadline) end() {
	d.timer.Stop()
	d.cancel(nil)
}

// of makes of err what it is if the time is up, rather than what ending the request
// made of it.
func (d *deadline) of(err error) error {
	if err != nil && context.Cause(d.Context) == errLate {
		return fmt.Errorf("no answer within %s: %w", d.timeout, context.DeadlineExceeded)
	}
	return err
}

// A ToolTimeout is the timeout of the tools that Pattern matches: a name as the server
// has it, or the beginning of one and *.
type ToolTimeout struct {
	Pattern string
	Timeout time.Duration
}

// timeoutOf returns how long a tool may be silent.
func (c *Config) timeoutOf(tool string) time.Duration {
	for _, one := range c.CallTimeouts {
		if match.Pattern(one.Pattern).Matches(tool) {
			return one.Timeout
		}
	}
	return c.CallTimeout
}

// LongestCall is how long a call may take if the server tells of its progress.
func (e *Endpoint) LongestCall() time.Duration {
	longest := e.cfg.CallTimeout
	for _, t := range e.cfg.CallTimeouts {
		longest = max(longest, t.Timeout)
	}
	return maxExtended * longest
}
