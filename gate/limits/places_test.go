package limits_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
)

var alice = gate.Owner{ID: "alice"}

// enter takes what one call does, of "session server tool", of one principal.
func enter(ctx context.Context, l *limits.Limits, of string) (release func(int64), pause func() func(context.Context) error, err error) {
	f := strings.Fields(of)
	s, err := l.Enter(ctx, gate.Entry{Limit: gate.LimitConcurrent, Caller: gate.SessionKey{Owner: alice}, Session: gate.SessionKey{Owner: alice, ID: f[0]}})
	if err != nil {
		return nil, nil, err
	}
	if err := s.Charge(ctx, gate.Charges{Server: f[1], Tool: f[1] + "__" + f[2]}); err != nil {
		s.Release(0)
		return nil, nil, err
	}
	return s.Release, s.Pause, nil
}

// TestRooms: each limit refuses what is beyond it, says whose it is, and holds up
// nothing else.
func TestRooms(t *testing.T) {
	o := limits.Options{
		Concurrent: 4, Session: 2, Wait: -1,
		Server: func(s string) int { return map[string]int{"narrow": 1}[s] },
		Tool:   func(t string) int { return map[string]int{"wide__once": 1}[t] },
	}
	tests := map[string]struct {
		taken    []string
		next     string
		refused  string // whose limit; "" for none
		nextFree string
	}{
		"a session has its own":             {[]string{"s wide a", "s wide b"}, "s wide c", "this client", "t wide c"},
		"a server has its own":              {[]string{"s narrow a"}, "t narrow b", "the server", "t wide b"},
		"a tool has its own":                {[]string{"s wide once"}, "t wide once", "the tool", "t wide other"},
		"all have one":                      {[]string{"s wide a", "s wide b", "t wide a", "t wide b"}, "u wide c", "the gateway", ""},
		"what is refused leaves no trace":   {[]string{"s narrow a"}, "t narrow a", "the server", "t wide once"},
		"a tool's limit counts in its room": {[]string{"s wide once", "s wide a"}, "s wide b", "this client", "t wide b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := limits.New(o)
			var releases []func(int64)
			for _, of := range tt.taken {
				release, _, err := enter(t.Context(), l, of)
				if err != nil {
					t.Fatal(err)
				}
				releases = append(releases, release)
			}
			_, _, err := enter(t.Context(), l, tt.next)
			if !errors.Is(err, gate.ErrBusy) || !strings.HasPrefix(fmt.Sprint(err), tt.refused+" has as many calls under way") {
				t.Errorf("err = %v, want that of %s", err, tt.refused)
			}
			if tt.nextFree != "" {
				release, _, err := enter(t.Context(), l, tt.nextFree)
				if err != nil {
					t.Fatal(err)
				}
				releases = append(releases, release)
			}
			for _, r := range releases {
				r(0)
			}
			if _, _, err := enter(t.Context(), l, tt.next); err != nil {
				t.Errorf("after all have ended: %v", err)
			}
		})
	}
}

// TestWaitingForARoomHoldsUpNobody: calls of a busy server wait, those of others
// behind them do not.
func TestWaitingForARoomHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Concurrent: 3, Wait: time.Hour, Server: func(s string) int { return map[string]int{"slow": 1}[s] }})
		first, _, err := enter(t.Context(), l, "s slow a")
		if err != nil {
			t.Fatal(err)
		}
		var waited atomic.Bool
		go func() {
			if _, _, err := enter(t.Context(), l, "s slow a"); err == nil {
				waited.Store(true)
			}
		}()
		synctest.Wait()
		start := time.Now()
		if _, _, err := enter(t.Context(), l, "s quick a"); err != nil || time.Since(start) > 0 {
			t.Errorf("a call of another server waited %v: %v", time.Since(start), err)
		}
		if waited.Load() {
			t.Fatal("two calls at a server that takes one")
		}
		first(0)
		synctest.Wait()
		if !waited.Load() {
			t.Error("the place that became free is lost")
		}
	})
}

// TestTurns: a client that makes ten thousand calls at once does not hold up one
// that makes a few.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const flood, took = 10_000, 10 * time.Millisecond
		l := limits.New(limits.Options{Concurrent: 4})
		var wg sync.WaitGroup
		var carried, refused atomic.Int64
		call := func(of string) error {
			release, _, err := enter(t.Context(), l, of)
			if err != nil {
				return err
			}
			time.Sleep(took)
			release(0)
			return nil
		}
		for range flood {
			wg.Go(func() {
				switch err := call("greedy s a"); {
				case err == nil:
					carried.Add(1)
				case errors.Is(err, gate.ErrBusy):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for range 10 {
			start := time.Now()
			if err := call("modest s a"); err != nil {
				t.Errorf("the other client: %v", err)
			}
			if d := time.Since(start); d > 2*took {
				t.Errorf("the other client waited %v", d)
			}
		}
		wg.Wait()
		if carried.Load() < 16 || carried.Load()+refused.Load() != flood { // those in places and in the queue, but for the one that made room
			t.Errorf("%d carried out, %d refused", carried.Load(), refused.Load())
		}
	})
}

// TestTurnsAlternate: the waiting calls of two sessions come one after the other.
func TestTurnsAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Concurrent: 1, Wait: time.Hour, Queue: 5})
		first, _, err := enter(t.Context(), l, "x s a")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, who := range []string{"a", "a", "a", "b", "b"} {
			wg.Go(func() {
				release, _, err := enter(context.WithoutCancel(t.Context()), l, who+" s a")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				time.Sleep(time.Second)
				release(0)
			})
			synctest.Wait()
		}
		first(0)
		wg.Wait()
		if got := strings.Join(order, ""); got != "ababa" {
			t.Errorf("order %s", got)
		}
	})
}
