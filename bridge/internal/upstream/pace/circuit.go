package pace

import (
	"fmt"
	"sync"
	"time"
)

// The states of a circuit that is not closed, as the status has them.
const (
	// Open: calls fail at once.
	Open = "open"
	// HalfOpen: the next call is let through, and decides.
	HalfOpen = "half-open"
)

const (
	// maxFaults is how many faults in a row open a circuit.
	maxFaults = 5
	// firstCoolOff is how long a circuit stays open, doubled up to maxCoolOff each time
	// that the call which tries it fails.
	firstCoolOff = time.Second
	maxCoolOff   = 30 * time.Second
)

// A Circuit spares callers the wait for a server that does not answer, and the server
// the calls (M. Nygard, Release It!, "Circuit Breaker"). After maxFaults faults in a
// row, of calls or of attempts to connect, it opens for a while; then one call is let
// through, whose outcome closes it or opens it again. Errors of tools are no faults. The
// zero Circuit is closed. Use it from several goroutines.
type Circuit struct {
	mu       sync.Mutex
	calls    int       // faults of calls since the last success
	connects int       // faults of connecting since the last success
	last     time.Time // when a fault of a call was counted last
	until    time.Time // zero while it is closed
	trying   bool      // a call is let through a half-open circuit
	coolOff  Backoff
}

// An Outcome is what a call shows about its server.
type Outcome int

const (
	Silent   Outcome = iota // nothing: the caller went away, or what it said is no MCP
	Answered                // it answered, be it with an error
	Broke                   // the connection broke
	Late                    // it did not answer in time
)

// An OpenError says that a server has failed too often to be called now.
type OpenError struct {
	Until time.Time
	Why   error // there is no connection; nil if there is one
}

func (e *OpenError) Error() string {
	text := fmt.Sprintf("%d faults in a row; the next call is let through after %s", maxFaults, clock(e.Until))
	if e.Why != nil {
		text += ": " + e.Why.Error()
	}
	return text
}

// Public returns what a client may read.
func (e *OpenError) Public() string {
	return "the server has failed several times in a row, and is not called before " + clock(e.Until)
}

func (e *OpenError) Unwrap() error { return e.Why }

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Enter asks whether a call may be made. trial says that it tries a half-open circuit;
// then Leave has to be told.
func (c *Circuit) Enter(now time.Time) (trial, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until.IsZero():
		return false, true
	case c.trying || now.Before(c.until):
		return false, false
	}
	c.trying = true
	return true, true
}

// Leave tells of a call that began at the given time, and reports whether the circuit
// has opened or closed. Calls that were under way when one of them broke have broken
// with it: they count once.
func (c *Circuit) Leave(trial bool, began, now time.Time, o Outcome) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if trial {
		c.trying = false
	}
	switch {
	case o == Answered:
		c.calls, c.connects = 0, 0
		return c.close()
	case o == Silent || o == Broke && began.Before(c.last):
		return false
	}
	c.last = now
	c.calls++
	return c.faulted(trial, now)
}

// Connected tells of an attempt to connect. One that succeeded closes a circuit which
// the failed ones have opened; where calls failed, a call has to succeed.
func (c *Circuit) Connected(ok bool, now time.Time) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok {
		c.connects++
		return c.faulted(!c.until.IsZero() && !now.Before(c.until), now)
	}
	c.connects = 0
	return c.calls < maxFaults && c.close()
}

// faulted opens the circuit if it is time. The caller holds mu.
func (c *Circuit) faulted(trial bool, now time.Time) (changed bool) {
	closed := c.until.IsZero()
	if trial && !closed || closed && c.calls+c.connects >= maxFaults {
		c.coolOff.First, c.coolOff.Most = firstCoolOff, maxCoolOff
		c.until = now.Add(c.coolOff.Next())
	}
	return closed != c.until.IsZero()
}

func (c *Circuit) close() (changed bool) {
	changed = !c.until.IsZero()
	c.until = time.Time{}
	c.coolOff.Reset()
	return changed
}

// State is Open, HalfOpen, or "" of a closed circuit.
func (c *Circuit) State(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until.IsZero():
		return ""
	case now.Before(c.until):
		return Open
	default:
		return HalfOpen
	}
}

// OpenUntil is when the next call is let through; zero if the circuit is closed.
func (c *Circuit) OpenUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until
}
