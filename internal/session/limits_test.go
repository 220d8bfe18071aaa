package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/limit"
	"github.com/wasmgate/wasmgate/internal/seed"
	"github.com/wasmgate/wasmgate/internal/session"
)

func places(n int64) []gate.Charge {
	return []gate.Charge{{Limit: limit.Concurrent, Owner: gate.Owner{ID: "alice"}, N: n}}
}

func take(tb testing.TB, l *session.Limits, n int64) func(int64) {
	tb.Helper()
	release, _, err := l.Take(tb.Context(), places(n))
	if err != nil {
		tb.Fatal(err)
	}
	return release
}

func TestTakeRefuses(t *testing.T) {
	tests := map[string]struct {
		charges []gate.Charge
		busy    bool
	}{
		"a limit that nobody keeps":     {[]gate.Charge{{Limit: "rate", N: 1}}, false},
		"one known and one unknown":     {append(places(1), gate.Charge{Limit: "rate", N: 1}), false},
		"more than there is":            {places(3), false},
		"more than there is, in sum":    {append(places(1), places(2)...), false},
		"nothing":                       {places(0), false},
		"less than nothing":             {places(-1), false},
		"more than is left":             {places(2), true},
		"more than is left, in sum":     {append(places(1), places(1)...), true},
		"a sum beyond the integers":     {append(places(1), places(1<<63-1)...), false},
		"no more than is left, but one": {append(places(1), gate.Charge{}), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := session.NewLimits(session.LimitOptions{Concurrent: 2, Wait: -1})
			release := take(t, l, 1)
			_, _, err := l.Take(t.Context(), tt.charges)
			if err == nil || errors.Is(err, limit.ErrBusy) != tt.busy {
				t.Errorf("err = %v, busy expected: %v", err, tt.busy)
			}
			release(0)
			take(t, l, 2) // nothing was taken by what was refused
		})
	}
}

func TestTakeNothing(t *testing.T) {
	l := session.NewLimits(session.LimitOptions{Concurrent: 1, Wait: -1})
	take(t, l, 1)
	if _, _, err := l.Take(t.Context(), nil); err != nil {
		t.Errorf("no charge at all: %v", err)
	}
}

func TestReleaseTwiceIsOnce(t *testing.T) {
	l := session.NewLimits(session.LimitOptions{Concurrent: 2, Wait: -1})
	first := take(t, l, 1)
	take(t, l, 1)
	first(0)
	first(0)
	take(t, l, 1)
	if _, _, err := l.Take(t.Context(), places(1)); !errors.Is(err, limit.ErrBusy) {
		t.Errorf("err = %v", err)
	}
}

func TestWait(t *testing.T) {
	tests := map[string]struct {
		options  session.LimitOptions
		free     time.Duration // after which the place is free; 0: never
		cancel   time.Duration // after which the caller goes; 0: never
		err      error
		returned time.Duration
	}{
		"a place in time":             {session.LimitOptions{}, 300 * time.Millisecond, 0, nil, 300 * time.Millisecond},
		"no place in time":            {session.LimitOptions{}, 0, 0, limit.ErrBusy, time.Second},
		"a wait of its own length":    {session.LimitOptions{Wait: time.Minute}, 0, 0, limit.ErrBusy, time.Minute},
		"no wait":                     {session.LimitOptions{Wait: -1}, time.Second, 0, limit.ErrBusy, 0},
		"no queue":                    {session.LimitOptions{Queue: -1}, time.Second, 0, limit.ErrBusy, 0},
		"the caller goes":             {session.LimitOptions{}, 0, time.Millisecond, context.DeadlineExceeded, time.Millisecond},
		"the caller went long before": {session.LimitOptions{}, 0, -1, context.DeadlineExceeded, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.options.Concurrent = 1
				l := session.NewLimits(tt.options)
				release := take(t, l, 1)
				if tt.free > 0 {
					time.AfterFunc(tt.free, func() { release(0) })
				}
				ctx := t.Context()
				if tt.cancel != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.cancel)
					defer cancel()
				}
				start := time.Now()
				_, _, err := l.Take(ctx, places(1))
				if !errors.Is(err, tt.err) || time.Since(start) != tt.returned {
					t.Errorf("after %v: %v; want after %v: %v", time.Since(start), err, tt.returned, tt.err)
				}
				time.Sleep(2 * time.Second)
				if tt.err != nil { // who gave up has left nothing behind
					release(0)
					take(t, l, 1)
				}
			})
		})
	}
}

func TestWaitersComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := session.NewLimits(session.LimitOptions{Concurrent: 3, Wait: time.Hour, Queue: 3})
		releases := []func(int64){take(t, l, 1), take(t, l, 1), take(t, l, 1)}
		got := make(chan int64, 3)
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, n := range []int64{2, 1, 3} {
			wg.Go(func() {
				release, _, err := l.Take(t.Context(), places(n))
				if err != nil {
					t.Error(err)
					return
				}
				got <- n
				time.Sleep(time.Minute)
				release(0)
			})
			synctest.Wait()
		}
		if _, _, err := l.Take(t.Context(), places(1)); !errors.Is(err, limit.ErrBusy) {
			t.Errorf("beyond the queue: %v", err)
		}
		releases[0](0)
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("one that needs less went past one that waits longer")
		}
		releases[1](0)
		releases[2](0)
		var order []int64
		for range 3 {
			order = append(order, <-got)
		}
		// 2 and 1 fit together: which of them is first to say so is chance.
		if order[2] != 3 {
			t.Errorf("order %v", order)
		}
	})
}

// One that gives up makes way for one behind it that needs less.
func TestGivingUpMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := session.NewLimits(session.LimitOptions{Concurrent: 2, Wait: time.Hour})
		take(t, l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go l.Take(ctx, places(2))
		synctest.Wait()
		start := time.Now()
		time.AfterFunc(time.Second, cancel)
		take(t, l, 1)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

// A place that comes at the moment in which the wait ends is taken, or is left
// for others.
func TestPlaceAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			l := session.NewLimits(session.LimitOptions{Concurrent: 1, Wait: time.Second, Queue: 1})
			first := take(t, l, 1)
			time.AfterFunc(time.Second, func() { first(0) })
			release, _, err := l.Take(t.Context(), places(1))
			if err == nil {
				release(0)
			}
			synctest.Wait()
			if _, _, err := l.Take(t.Context(), places(1)); err != nil {
				t.Fatalf("the place is lost: %v", err)
			}
		}
	})
}

// However calls come and go, there are never more than the limit, and all places
// are free in the end.
func TestLimitsHammer(t *testing.T) {
	const most = 4
	seed := seed.Of(t)
	l := session.NewLimits(session.LimitOptions{Concurrent: most, Wait: time.Millisecond, Queue: 5})
	var running, done atomic.Int64
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Microsecond)
				n := 1 + r.Int64N(most)
				release, _, err := l.Take(ctx, places(n))
				if err == nil {
					if now := running.Add(n); now > most {
						t.Errorf("%d at once", now)
					}
					done.Add(1)
					running.Add(-n)
					release(0)
				} else if !errors.Is(err, limit.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if done.Load() == 0 {
		t.Error("no call came through")
	}
	take(t, l, most)
}

func BenchmarkTake(b *testing.B) {
	for _, concurrent := range []int{64, 1} {
		b.Run(fmt.Sprint("places=", concurrent), func(b *testing.B) {
			l := session.NewLimits(session.LimitOptions{Concurrent: concurrent})
			charges := places(1)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					release, _, err := l.Take(b.Context(), charges)
					if err != nil {
						b.Fatal(err)
					}
					release(0)
				}
			})
		})
	}
}

// Places says what is taken, what waits and what there is.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := session.NewLimits(session.LimitOptions{Concurrent: 1, Wait: time.Minute})
		release := take(t, l, 1)
		gone := make(chan error)
		go func() {
			_, _, err := l.Take(t.Context(), places(1))
			gone <- err
		}()
		synctest.Wait()
		if taken, waiting, most := l.Places(); taken != 1 || waiting != 1 || most != 1 {
			t.Errorf("%d taken, %d wait, of %d", taken, waiting, most)
		}
		if err := <-gone; !errors.Is(err, limit.ErrBusy) {
			t.Error(err)
		}
		release(0)
		if taken, waiting, _ := l.Places(); taken != 0 || waiting != 0 {
			t.Errorf("%d taken, %d wait", taken, waiting)
		}
	})
}
