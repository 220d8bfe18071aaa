package upstream

import (
	"fmt"
	"sync"
	"time"
)

// The states of a circuit that is not closed, as the status has them.
const (
	// CircuitOpen: calls fail at once.
	CircuitOpen = "open"
	// CircuitHalfOpen: the next call is let through, and decides.
	CircuitHalfOpen = "half-open"
)

const (
	// maxFaults is how many faults in a row open a circuit.
	maxFaults = 5
	// firstCoolOff is how long a circuit stays open, doubled up to maxCoolOff each time
	// that the call which tries it fails.
	firstCoolOff = time.Second
	maxCoolOff   = 30 * time.Second
)

// A circuit spares callers the wait for a server that does not answer, and the server
// the calls (M. Nygard, Release It!, "Circuit Breaker"). After maxFaults faults in a
// row, of calls or of attempts to connect, it opens for a while; then one call is let
// through, whose outcome closes it or opens it again. Errors of tools are no faults. Use
// it from several goroutines.
type circuit struct {
	mu       sync.Mutex
	calls    int       // faults of calls since the last success
	connects int       // faults of connecting since the last success
	last     time.Time // when a fault of a call was counted last
	until    time.Time // zero while it is closed
	trying   bool      // a call is let through a half-open circuit
	coolOff  backoff
}

// An outcome is what a call told of its server.
type outcome int

const (
	silent   outcome = iota // nothing: the caller went away, or what it said is no MCP
	answered                // it answered, be it with an error
	broke                   // the connection broke
	late                    // it did not answer in time
)

// A circuitError says that a server has failed too often to be called now.
type circuitError struct {
	until time.Time
	fault *Fault // why there is no connection; nil if there is one
}

func (e *circuitError) Error() string {
	text := fmt.Sprintf("%d faults in a row; the next call is let through after %s", maxFaults, clock(e.until))
	if e.fault != nil {
		text += ": " + e.fault.Error()
	}
	return text
}

func (e *circuitError) Unwrap() error {
	if e.fault == nil {
		return nil
	}
	return e.fault
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// enter asks whether a call may be made. trial says that it tries a half-open circuit;
// then leave has to be told.
func (c *circuit) enter(now time.Time) (trial, ok bool) {
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

// leave tells of a call that began at the given time, and reports whether the circuit
// has opened or closed. Calls that were under way when one of them broke have broken
// with it: they count once.
func (c *circuit) leave(trial bool, began, now time.Time, o outcome) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if trial {
		c.trying = false
	}
	switch {
	case o == answered:
		c.calls, c.connects = 0, 0
		return c.close()
	case o == silent || o == broke && began.Before(c.last):
		return false
	}
	c.last = now
	c.calls++
	return c.faulted(trial, now)
}

// connected tells of an attempt to connect. One that succeeded closes a circuit which
// the failed ones have opened; where calls failed, a call has to succeed.
func (c *circuit) connected(ok bool, now time.Time) (changed bool) {
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
func (c *circuit) faulted(trial bool, now time.Time) (changed bool) {
	closed := c.until.IsZero()
	if trial && !closed || closed && c.calls+c.connects >= maxFaults {
		c.coolOff.first, c.coolOff.most = firstCoolOff, maxCoolOff
		c.until = now.Add(c.coolOff.next())
	}
	return closed != c.until.IsZero()
}

func (c *circuit) close() (changed bool) {
	changed = !c.until.IsZero()
	c.until = time.Time{}
	c.coolOff.reset()
	return changed
}

// state is CircuitOpen, CircuitHalfOpen, or "" of a closed circuit.
func (c *circuit) state(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until.IsZero():
		return ""
	case now.Before(c.until):
		return CircuitOpen
	default:
		return CircuitHalfOpen
	}
}

// openUntil is when the next call is let through; zero if the circuit is closed.
func (c *circuit) openUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until
}
