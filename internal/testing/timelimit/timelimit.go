// Package timelimit gives tests time limits that hold on slow machines.
package timelimit

import (
	"testing"
	"time"
)

// Grow calls try with a time limit that grows from a first one until try succeeds, because work that fits
// into a short limit on one machine does not on another. It fails t if try does not succeed with a minute.
func Grow(t testing.TB, first time.Duration, try func(limit time.Duration) error) {
	t.Helper()
	for limit := first; ; limit = min(4*limit, time.Minute) {
		err := try(limit)
		if err == nil {
			return
		}
		if limit >= time.Minute {
			t.Fatalf("with %v: %v", limit, err)
		}
		t.Logf("with %v: %v; trying with more", limit, err)
	}
}

// Patience returns how long t waits for something that takes well under a second on an idle machine:
// half of the time until its deadline and at least a minute, so that a slow machine passes, and a test that
// waits in vain still reports where.
func Patience(t testing.TB) time.Duration {
	const least, without = time.Minute, 10 * time.Minute
	if t, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := t.Deadline(); ok {
			return max(least, time.Until(deadline)/2)
		}
	}
	return without
}

// Wait calls is until it returns true, and fails t after its Patience. Between two calls it pauses for
// three times as long as one takes, and at least 5 ms: a check that starts a program leaves the
// machine to what it waits for.
func Wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience(t)); ; {
		began := time.Now()
		if is() {
			return
		}
		if began.After(end) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(max(5*time.Millisecond, 3*time.Since(began)))
	}
}
