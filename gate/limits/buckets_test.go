package limits_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// call charges a call of a principal to rates.
func call(l *limits.Limits, t *testing.T, id string, rates ...gate.Charge) (func(int64), error) {
	t.Helper()
	s, err := l.Enter(t.Context(), gate.Entry{Limit: gate.LimitConcurrent, Caller: gate.SessionKey{Owner: gate.Owner{ID: id}}})
	if err != nil {
		return nil, err
	}
	if err := s.Charge(t.Context(), gate.Charges{Server: "s", Tool: "s__t", Rates: rates}); err != nil {
		s.Release(0)
		return nil, err
	}
	return s.Release, nil
}

func rate(id string, r obligation.Rate) gate.Charge {
	return gate.Charge{Limit: "rate", Owner: gate.Owner{ID: id}, Rate: &r}
}

// passes reports whether a call that uses so many bytes passes, and ends it.
func passes(t *testing.T, l *limits.Limits, id string, r obligation.Rate, bytes int64) bool {
	t.Helper()
	release, err := call(l, t, id, rate(id, r))
	if err == nil {
		release(bytes)
		return true
	}
	if over, ok := errors.AsType[*obligation.OverRate](err); !ok || over.After <= 0 {
		t.Fatalf("error %v, want an OverRate with a time", err)
	}
	return false
}

func TestRateOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{})
		r := obligation.Rate{Calls: 60, Per: time.Minute, Burst: 3}
		for i := range 3 {
			if !passes(t, l, "alice", r, 0) {
				t.Fatalf("call %d of the burst is refused", i)
			}
		}
		if passes(t, l, "alice", r, 0) {
			t.Error("a call beyond the burst passes")
		}
		if !passes(t, l, "bob", r, 0) {
			t.Error("alice's calls count for bob")
		}
		for range 100 { // at the pace, for as long as one likes
			time.Sleep(time.Second)
			if !passes(t, l, "alice", r, 0) || passes(t, l, "alice", r, 0) {
				t.Fatal("one call a second: one passes, the next does not")
			}
		}
		time.Sleep(time.Hour)
		for i := range 4 {
			if got := passes(t, l, "alice", r, 0); got != (i < 3) {
				t.Errorf("call %d after a rest: %v", i, got)
			}
		}
	})
}

// Waiting for as long as RetryAfter says is enough, and waiting for less is not.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := seed.Rand(t)
		for range 300 {
			l := limits.New(limits.Options{})
			r := obligation.Rate{Calls: 1 + rnd.Int64N(20), Bytes: 1 + rnd.Int64N(1000), Per: time.Duration(1+rnd.Int64N(100_000)) * time.Millisecond}
			waits := 0
			for waits < 5 {
				release, err := call(l, t, "alice", rate("alice", r))
				if err == nil {
					release(rnd.Int64N(300))
					continue
				}
				over, ok := errors.AsType[*obligation.OverRate](err)
				if !ok {
					t.Fatal(err)
				}
				if waits++; over.After > 2*time.Millisecond {
					time.Sleep(over.After - 2*time.Millisecond)
					if passes(t, l, "alice", r, 0) {
						t.Fatalf("%+v: passes before %v", r, over.After)
					}
				}
				time.Sleep(2 * time.Millisecond)
				if !passes(t, l, "alice", r, 0) {
					t.Fatalf("%+v: does not pass after %v", r, over.After)
				}
			}
		}
	})
}

// Bytes are charged when they are known; then the next call waits for them.
func TestRateOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{})
		r := obligation.Rate{Bytes: 100, Per: time.Second}
		if !passes(t, l, "alice", r, 300) || passes(t, l, "alice", r, 0) {
			t.Fatal("the first passes, and the next waits for its bytes")
		}
		time.Sleep(1900 * time.Millisecond)
		if passes(t, l, "alice", r, 0) {
			t.Error("passes before its bytes are paid")
		}
		time.Sleep(200 * time.Millisecond)
		if !passes(t, l, "alice", r, 1<<62) {
			t.Error("does not pass when they are")
		}
		time.Sleep(2000 * time.Second) // no debt lasts for ever
		if !passes(t, l, "alice", r, 0) {
			t.Error("one call has used up the rate for years")
		}
	})
}

// All of the charges are taken, or none.
func TestRatesAreTakenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Wait: -1, Tool: func(string) int { return 1 }})
		two, one := obligation.Rate{Calls: 2, Per: time.Hour}, obligation.Rate{Calls: 1, Per: time.Hour}
		charges := []gate.Charge{{Limit: "two", Rate: &two}, {Limit: "one", Rate: &one}}
		pass := func(charges ...gate.Charge) error {
			release, err := call(l, t, "alice", charges...)
			if err == nil {
				release(0)
			}
			return err
		}
		if err := pass(charges...); err != nil {
			t.Fatal(err)
		}
		if err := pass(charges...); err == nil {
			t.Fatal("more than one")
		}
		if err := pass(charges[:1]...); err != nil {
			t.Errorf("a refused call has taken a token: %v", err)
		}
		// Nor does one that finds no slot of its tool.
		release, err := call(l, t, "alice")
		if err != nil {
			t.Fatal(err)
		}
		three := obligation.Rate{Calls: 1, Per: time.Hour}
		charge := gate.Charge{Limit: "three", Rate: &three}
		if err := pass(charge); !errors.Is(err, gate.ErrBusy) {
			t.Fatalf("err = %v", err)
		}
		release(0)
		if err := pass(charge); err != nil {
			t.Errorf("a call without a slot has taken a token: %v", err)
		}
	})
}

func TestRatesThatCannotBeMet(t *testing.T) {
	for name, r := range map[string]obligation.Rate{
		"of nothing":        {Per: time.Second},
		"in no time":        {Calls: 1},
		"in negative time":  {Calls: 1, Per: -1},
		"of negative calls": {Calls: -1, Bytes: 5, Per: time.Second},
		"of negative bytes": {Calls: 5, Bytes: -1, Per: time.Second},
	} {
		if _, err := call(limits.New(limits.Options{}), t, "alice", rate("alice", r)); err == nil {
			t.Errorf("a rate %s is met", name)
		}
	}
}

// At the bound no principal is forgotten that has used anything: others are refused, until some
// bucket is full.
func TestBucketsAtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Buckets: 50})
		r := obligation.Rate{Calls: 1, Per: time.Minute}
		for i := range 50 {
			if !passes(t, l, fmt.Sprint(i), r, 0) {
				t.Fatalf("call of %d is refused", i)
			}
			time.Sleep(time.Second)
		}
		if passes(t, l, "new", r, 0) {
			t.Error("there is room beyond the bound")
		}
		for i := range 50 {
			if i > 0 && passes(t, l, fmt.Sprint(i), r, 0) {
				t.Errorf("%d was forgotten", i)
			}
		}
		time.Sleep(15 * time.Second) // the first ones are full again
		if !passes(t, l, "new", r, 0) || passes(t, l, "new", r, 0) {
			t.Error("there is room now for one")
		}
	})
}

// TestHammerRates: of calls by many at once no more pass than there are tokens.
func TestHammerRates(t *testing.T) {
	l := limits.New(limits.Options{Concurrent: 1000})
	r := obligation.Rate{Calls: 100, Per: 1000 * time.Hour}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if release, err := call(l, t, "alice", rate("alice", r)); err == nil {
					passed.Add(1)
					release(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 100 {
		t.Errorf("%d calls passed, want 100", passed.Load())
	}
}
