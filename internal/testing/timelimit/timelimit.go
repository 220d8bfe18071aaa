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
