package limits_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// ledger is a bucket of 100 tokens of calls that does not fill.
type ledger struct {
	mu    sync.Mutex
	used  float64
	asked atomic.Int64
	err   error
	slow  chan struct{} // nil answers at once
}

func (l *ledger) Exchange(_ context.Context, _ gate.Charge, back, want limits.Tokens) (took, left limits.Tokens, err error) {
	l.asked.Add(1)
	if l.slow != nil {
		<-l.slow
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= back.Calls
	if took.Calls = min(want.Calls, 100-l.used); took.Calls < 1 {
		took.Calls = 0
	}
	l.used += took.Calls
	return took, limits.Tokens{Calls: 100 - l.used}, l.err
}

var hundred = obligation.Rate{Calls: 100, Per: 1000 * time.Hour}

// A gateway asks once for a tenth of the burst, and calls that are refused do not ask each.
func TestPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := new(ledger)
		l := limits.New(limits.Options{Rates: of})
		for i := range 100 {
			if !passes(t, l, "alice", hundred, 0) {
				t.Fatalf("call %d is refused", i)
			}
		}
		if n := of.asked.Load(); n != 10 {
			t.Errorf("100 calls ask %d times", n)
		}
		for range 100 {
			if passes(t, l, "alice", hundred, 0) {
				t.Fatal("a call beyond the rate passes")
			}
		}
		if n := of.asked.Load(); n != 11 {
			t.Errorf("100 refused calls ask %d times", n-10)
		}
		time.Sleep(2 * time.Second)
		of.used -= 5 // another gateway gives back
		if !passes(t, l, "alice", hundred, 0) {
			t.Error("a call is refused though another gateway has given tokens back")
		}
		if err := l.ReturnRates(t.Context()); err != nil || of.used != 96 {
			t.Errorf("%v tokens are used after 96 calls, %v", of.used, err)
		}
		asked := of.asked.Load()
		if err := l.ReturnRates(t.Context()); err != nil || of.asked.Load() != asked {
			t.Errorf("nothing is given back, and %d times asked, %v", of.asked.Load()-asked, err)
		}
	})
}

// While the rates cannot be read no call passes, and calls that came meanwhile share the error. What was
// given back with an error is not given back again.
func TestPortionsWithoutStore(t *testing.T) {
	away := errors.New("away")
	of := &ledger{slow: make(chan struct{}), err: away}
	l := limits.New(limits.Options{Rates: of})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := call(l, t, "alice", rate("alice", hundred)); !errors.Is(err, away) {
				t.Errorf("error %v", err)
			}
		})
	}
	timelimit.Wait(t, "all calls have begun", func() bool { taken, _, _ := l.Places(); return taken == 20 })
	close(of.slow)
	wg.Wait()
	if n := of.asked.Load(); n >= 20 {
		t.Errorf("20 calls at once ask %d times", n)
	}
	of.err, of.used = nil, 0
	if !passes(t, l, "alice", hundred, 0) {
		t.Error("a call is refused though the rates can be read again")
	}
	of.err = away
	if err := l.ReturnRates(t.Context()); !errors.Is(err, away) || of.used != 1 {
		t.Errorf("%v tokens are used, error %v", of.used, err)
	}
	of.err = nil
	if err := l.ReturnRates(t.Context()); err != nil || of.used != 1 {
		t.Errorf("%v tokens are used after tokens came back twice, %v", of.used, err)
	}
}
