package pace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCircuit(t *testing.T) {
	var c Circuit
	now := time.Unix(1, 0)
	for range maxFaults {
		if _, ok := c.Enter(now); !ok {
			t.Fatal("open too soon")
		}
		now = now.Add(time.Second)
		c.Leave(false, now, now, Late)
	}
	open := &OpenError{c.OpenUntil(), errors.New("why")}
	if _, ok := c.Enter(now); ok || c.State(now) != Open || !strings.Contains(open.Error(), "why") || strings.Contains(open.Public(), "why") {
		t.Errorf("%s after %d faults: %v", c.State(now), maxFaults, open)
	}
	now = now.Add(firstCoolOff)
	trial, ok := c.Enter(now)
	if _, second := c.Enter(now); !trial || !ok || second || c.State(now) != HalfOpen {
		t.Errorf("%s: a trial %t, let through %t, and a second %t", c.State(now), trial, ok, second)
	}
	if changed := c.Leave(true, now, now, Answered); !changed || c.State(now) != "" {
		t.Errorf("%s after an answer, changed %t", c.State(now), changed)
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{First: time.Second, Most: 3 * time.Second}
	for range 2 {
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
			if got := b.Next(); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		b.Reset()
	}
}

// A deadline that is extended all the time ends all the same, and the time in which a
// person is asked does not count.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := NewDeadline(t.Context(), time.Second)
		defer d.End()
		d.Pause()
		time.Sleep(time.Hour)
		d.Resume()
		for d.Err() == nil {
			select {
			case <-time.After(300 * time.Millisecond):
				d.Extend()
			case <-d.Done():
			}
		}
		if took := time.Since(began) - time.Hour; took != MaxExtended*time.Second || context.Cause(d) != ErrLate {
			t.Errorf("ended after %v: %v", took, context.Cause(d))
		}
		if err := d.Of(context.Canceled); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an error of its end: %v", err)
		}
	})
}
