package limits_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// holds takes the places of a call, of "session server tool".
func holds(t *testing.T, l *limits.Limits, of string) (func(int64), func() func(context.Context) error) {
	t.Helper()
	release, pause, err := enter(t.Context(), l, of)
	if err != nil {
		t.Fatal(err)
	}
	return release, pause
}

func busy(t *testing.T, l *limits.Limits, of string) bool {
	t.Helper()
	release, _, err := enter(t.Context(), l, of)
	if err == nil {
		release(0)
	} else if !errors.Is(err, gate.ErrBusy) {
		t.Fatal(err)
	}
	return err != nil
}

// A call that is away leaves its place, and that of its session, to others; its server
// and its tool have it still.
func TestAway(t *testing.T) {
	l := limits.New(limits.Options{
		Concurrent: 2, Session: 1, Wait: -1, Server: func(string) int { return 1 },
	})
	release, pause := holds(t, l, "s files a")
	if !busy(t, l, "s wiki a") || !busy(t, l, "t files a") {
		t.Fatal("the call has no place")
	}
	resume := pause()
	if busy(t, l, "s wiki a") {
		t.Error("the session's place is not free")
	}
	if !busy(t, l, "t files a") {
		t.Error("the server's place is free, and the server has the call")
	}
	if again := pause(); again != nil {
		t.Error("what has no place gives one back")
	}
	if err := resume(t.Context()); err != nil || !busy(t, l, "s wiki a") {
		t.Errorf("the call has no place again: %v", err)
	}
	if err := resume(t.Context()); err != nil {
		t.Error(err)
	}
	release(0)
	for _, of := range []string{"s files a", "t files a"} {
		if busy(t, l, of) {
			t.Errorf("the call has left something behind for %s", of)
		}
	}
}

// A call can end while it is away, and while it waits for its place.
func TestAwayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Concurrent: 1, Wait: -1})
		release, pause := holds(t, l, "s files a")
		resume := pause()
		release(0)
		if err := resume(t.Context()); err != nil || busy(t, l, "s files a") {
			t.Errorf("a call that has ended takes a place: %v", err)
		}

		release, pause = holds(t, l, "s files a")
		resume = pause()
		other, _ := holds(t, l, "t files a")
		resumed := make(chan error)
		go func() { resumed <- resume(t.Context()) }()
		synctest.Wait()
		release(0)
		other(0)
		if err := <-resumed; err != nil || busy(t, l, "s files a") {
			t.Errorf("a call that has ended meanwhile takes a place: %v", err)
		}

		release, pause = holds(t, l, "s files a")
		resume = pause()
		other, _ = holds(t, l, "t files a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := resume(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		other(0)
		release(0)
		if busy(t, l, "s files a") {
			t.Error("a call that gave up has left something behind")
		}
	})
}

// A session that comes back is before those that wait for their first place. It is never refused
// for lack of a place, however long that lasts and however full the queue is.
func TestAwayComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Concurrent: 1, Wait: time.Minute, Queue: 1})
		_, pause := holds(t, l, "s files a")
		resume := pause()
		other, _ := holds(t, l, "t files a")
		first, order := make(chan error), make(chan string, 2)
		go func() {
			release, _, err := enter(t.Context(), l, "u files a")
			if err == nil {
				order <- "new"
				release(0)
			}
			first <- err
		}()
		synctest.Wait()
		go func() { first <- resume(t.Context()); order <- "back" }()
		synctest.Wait()
		time.Sleep(30 * time.Second)
		other(0)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if got := <-order; got != "back" {
			t.Errorf("%s came first", got)
		}
		if err := <-first; !errors.Is(err, gate.ErrBusy) { // the place is not given back
			t.Errorf("the other got %v", err)
		}
	})
}

// Calls that are away are bounded, too: one more keeps its place.
func TestAwayIsBounded(t *testing.T) {
	l := limits.New(limits.Options{Concurrent: 1, Wait: -1})
	for i := range 4 {
		_, pause := holds(t, l, fmt.Sprint("s", i, " files a"))
		if pause() == nil {
			t.Fatalf("call %d keeps its place", i)
		}
	}
	_, pause := holds(t, l, "t files a")
	if pause() != nil {
		t.Error("a fifth call is away")
	}
	if !busy(t, l, "u files a") {
		t.Error("it has no place")
	}
}

// TestAwayTooLate: the server of a call can end the question that the call waits with, and
// goes on. Such calls are as many as may be away, however often their servers do so.
func TestAwayTooLate(t *testing.T) {
	l := limits.New(limits.Options{Concurrent: 1, Wait: -1})
	other, _ := holds(t, l, "end files a")
	ended, end := context.WithCancel(t.Context())
	end()
	var all []func(int64)
	for i := range 4 {
		other(0)
		release, pause := holds(t, l, fmt.Sprint("s", i, " files a"))
		resume := pause()
		other, _ = holds(t, l, "end files a")
		if err := resume(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("err = %v", err)
		}
		if i == 3 { // it asks once more, and gets its place back
			again := pause()
			other(0)
			if again == nil || again(t.Context()) != nil || !busy(t, l, "t files a") {
				t.Fatal("a call that came too late has no place after another question")
			}
			release(0)
			release, pause = holds(t, l, "s3 files a")
			resume = pause()
			other, _ = holds(t, l, "end files a")
			_ = resume(ended)
		}
		all = append(all, release)
	}
	other(0)
	fifth, pause := holds(t, l, "t files a")
	if pause() != nil {
		t.Error("a fifth call is away, and four are without a place of either kind")
	}
	fifth(0)
	for _, release := range all {
		release(0)
		release(0)
	}
	for i := range 4 {
		if _, pause := holds(t, l, fmt.Sprint("u", i, " files a")); pause() == nil {
			t.Errorf("place %d among those away is lost", i)
		}
	}
}

// TestHammerAway: whatever calls do, never more have places than there are, and none is
// lost.
func TestHammerAway(t *testing.T) {
	seed := seed.Of(t)
	const most = 3
	l := limits.New(limits.Options{Concurrent: most, Session: 2, Wait: time.Minute, Queue: 1000})
	var under atomic.Int64
	count := func() {
		if n := under.Add(1); n > most {
			t.Errorf("%d calls at once", n)
		}
	}
	var wg sync.WaitGroup
	for i := range 8 {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			for range 200 {
				release, pause, err := enter(t.Context(), l, fmt.Sprint("s", i%4, " files a"))
				if err != nil {
					t.Error(err)
					return
				}
				count()
				runtime.Gosched()
				under.Add(-1)
				switch resume := pause(); {
				case resume == nil: // it has its place still
					count()
					under.Add(-1)
				case rnd.IntN(4) == 0: // the call ends meanwhile
					wg.Go(func() { _ = resume(t.Context()) })
				case rnd.IntN(4) == 0: // no one goes on
				case rnd.IntN(4) == 0: // the question ends meanwhile, and the call asks again
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(30))*time.Microsecond)
					_ = resume(ctx)
					cancel()
					if again := pause(); again != nil {
						if err := again(t.Context()); err != nil {
							t.Error(err)
						}
					}
					wg.Go(func() { release(0) }) // twice, at one time
				default:
					if err := resume(t.Context()); err != nil {
						t.Error(err)
					}
					count()
					runtime.Gosched()
					under.Add(-1)
				}
				release(0)
			}
		})
	}
	wg.Wait()
	for i := range most {
		if _, _, err := enter(t.Context(), l, fmt.Sprint("end", i, " files a")); err != nil {
			t.Errorf("a place is lost: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := enter(ctx, l, "many files a"); err == nil {
		t.Error("there are more places than there were")
	}
}

// TestEnormousLimits leave room for the calls that there are.
func TestEnormousLimits(t *testing.T) {
	l := limits.New(limits.Options{Concurrent: math.MaxInt, Wait: -1})
	for range 2 {
		relay, err := l.Enter(t.Context(), gate.Entry{Limit: gate.LimitRelays})
		if err != nil {
			t.Fatal(err)
		}
		release, pause := holds(t, l, "s files a")
		resume := pause()
		if resume == nil {
			t.Fatal("a call keeps its place")
		}
		if err := resume(t.Context()); err != nil {
			t.Error(err)
		}
		release(0)
		relay.Release(0)
		l.Change(math.MaxInt, -1)
	}
}
