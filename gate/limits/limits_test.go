package limits_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func take(tb testing.TB, l *limits.Limits) func(int64) {
	tb.Helper()
	release, _, err := enter(tb.Context(), l, "s files a")
	if err != nil {
		tb.Fatal(err)
	}
	return release
}

func TestUnknownLimit(t *testing.T) {
	if s, err := limits.New(limits.Options{}).Enter(t.Context(), gate.Entry{Limit: "rate"}); s != nil || err == nil || errors.Is(err, gate.ErrBusy) {
		t.Errorf("%v, %v", s, err)
	}
}

func TestReleaseTwiceIsOnce(t *testing.T) {
	l := limits.New(limits.Options{Concurrent: 2, Wait: -1})
	first := take(t, l)
	take(t, l)
	first(0)
	first(0)
	take(t, l)
	if _, _, err := enter(t.Context(), l, "s files a"); !errors.Is(err, gate.ErrBusy) {
		t.Errorf("err = %v", err)
	}
}

func TestWait(t *testing.T) {
	tests := map[string]struct {
		options  limits.Options
		free     time.Duration // after which the place is free; 0: never
		cancel   time.Duration // after which the caller goes; 0: never
		err      error
		returned time.Duration
	}{
		"a place in time":             {limits.Options{}, 300 * time.Millisecond, 0, nil, 300 * time.Millisecond},
		"no place in time":            {limits.Options{}, 0, 0, gate.ErrBusy, time.Second},
		"a wait of its own length":    {limits.Options{Wait: time.Minute}, 0, 0, gate.ErrBusy, time.Minute},
		"no wait":                     {limits.Options{Wait: -1}, time.Second, 0, gate.ErrBusy, 0},
		"no queue":                    {limits.Options{Queue: -1}, time.Second, 0, gate.ErrBusy, 0},
		"the caller goes":             {limits.Options{}, 0, time.Millisecond, context.DeadlineExceeded, time.Millisecond},
		"the caller went long before": {limits.Options{}, 0, -1, context.DeadlineExceeded, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.options.Concurrent = 1
				l := limits.New(tt.options)
				release := take(t, l)
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
				_, _, err := enter(ctx, l, "s files a")
				if !errors.Is(err, tt.err) || time.Since(start) != tt.returned {
					t.Errorf("after %v: %v; want after %v: %v", time.Since(start), err, tt.returned, tt.err)
				}
				time.Sleep(2 * time.Second)
				if tt.err != nil { // who gave up has left nothing behind
					release(0)
					take(t, l)
				}
			})
		})
	}
}

// A place that comes at the moment in which the wait ends is taken, or is left
// for others.
func TestPlaceAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			l := limits.New(limits.Options{Concurrent: 1, Wait: time.Second, Queue: 1})
			first := take(t, l)
			time.AfterFunc(time.Second, func() { first(0) })
			release, _, err := enter(t.Context(), l, "s files a")
			if err == nil {
				release(0)
			}
			synctest.Wait()
			if _, _, err := enter(t.Context(), l, "s files a"); err != nil {
				t.Fatalf("the place is lost: %v", err)
			}
		}
	})
}

func BenchmarkTake(b *testing.B) {
	for _, concurrent := range []int{64, 1} {
		b.Run(fmt.Sprint("places=", concurrent), func(b *testing.B) {
			l := limits.New(limits.Options{Concurrent: concurrent})
			e := gate.Entry{Limit: gate.LimitConcurrent, Caller: gate.SessionKey{Owner: alice}, Session: gate.SessionKey{Owner: alice, ID: "s"}}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s, err := l.Enter(b.Context(), e)
					if err != nil {
						b.Fatal(err)
					}
					if err := s.Charge(b.Context(), gate.Charges{Server: "files", Tool: "files__a"}); err != nil {
						b.Fatal(err)
					}
					s.Release(0)
				}
			})
		})
	}
}

// Places says what is taken, what waits and what there is.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Concurrent: 1, Wait: time.Minute})
		release := take(t, l)
		gone := make(chan error)
		go func() {
			_, _, err := enter(t.Context(), l, "s files a")
			gone <- err
		}()
		synctest.Wait()
		if taken, waiting, most := l.Places(); taken != 1 || waiting != 1 || most != 1 {
			t.Errorf("%d taken, %d wait, of %d", taken, waiting, most)
		}
		if err := <-gone; !errors.Is(err, gate.ErrBusy) {
			t.Error(err)
		}
		release(0)
		if taken, waiting, _ := l.Places(); taken != 0 || waiting != 0 {
			t.Errorf("%d taken, %d wait", taken, waiting)
		}
	})
}

// A call that has its slots and is decided on again stays out of a server that was paused since.
func TestPausedSince(t *testing.T) {
	paused := ""
	l := limits.New(limits.Options{Server: func(string) int { return 1 }, Paused: func(server string) string {
		if server == paused {
			return "it is paused"
		}
		return ""
	}})
	slot, err := l.Enter(t.Context(), gate.Entry{Limit: gate.LimitConcurrent})
	if err != nil {
		t.Fatal(err)
	}
	c := gate.Charges{Server: "files", Tool: "files__read"}
	if err := slot.Charge(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Again = true
	if err := slot.Charge(t.Context(), c); err != nil {
		t.Errorf("it takes its slots twice: %v", err)
	}
	paused = "files"
	if err := slot.Charge(t.Context(), c); !errors.Is(err, gate.ErrBusy) {
		t.Errorf("error %v", err)
	}
}

func TestRates(t *testing.T) {
	storetest.Rates(t, func(*testing.T) []*limits.Limits {
		l := limits.New(limits.Options{})
		return []*limits.Limits{l, l, l}
	})
}
