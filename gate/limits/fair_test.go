package limits_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/internal/fair"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// by is a call of a caller in a session of its own.
func by(caller, session string) gate.Entry {
	owner := gate.Owner{ID: caller}
	return gate.Entry{Limit: gate.LimitConcurrent, Caller: gate.SessionKey{Owner: owner}, Session: gate.SessionKey{Owner: owner, ID: session}}
}

// TestFairShares has one caller keep every slot of the gateway, of a tool and of a server, in calls
// that do not end. Another caller's calls of the same tool and of others pass at once.
func TestFairShares(t *testing.T) {
	for name, o := range map[string]limits.Options{
		"the gateway": {Concurrent: 8},
		"a session":   {Concurrent: 64, Session: 8},
		"a tool":      {Tool: func(tool string) int { return map[string]int{"up__nap": 1}[tool] }},
		"a server":    {Server: func(string) int { return 3 }},
		"everything":  {Concurrent: 2, Session: 2, Tool: func(string) int { return 2 }, Server: func(string) int { return 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limits.New(o)
				ctx, end := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for i := range 200 {
					all.Go(func() {
						for ctx.Err() == nil {
							s, err := l.Enter(ctx, by("alice", fmt.Sprint(i%4)))
							if err == nil && s.Charge(ctx, gate.Charges{Server: "up", Tool: "up__nap"}) == nil {
								<-ctx.Done()
							}
							if err == nil {
								s.Release(0)
							}
							time.Sleep(100 * time.Millisecond) // a full queue refuses at once
						}
					})
				}
				time.Sleep(10 * time.Second)
				for i := range 20 {
					for _, tool := range []string{"nap", "quick"} {
						began := time.Now()
						s, err := l.Enter(t.Context(), by("bob", "b"))
						if err == nil {
							err = s.Charge(t.Context(), gate.Charges{Server: "up", Tool: "up__" + tool})
							s.Release(0)
						}
						if err != nil || time.Since(began) > 0 {
							t.Fatalf("call %d of %s waited %v: %v", i, tool, time.Since(began), err)
						}
					}
				}
				end()
				all.Wait()
			})
		})
	}
}

// TestWaitGivesTheSlotBack: a call that waits for its tool leaves its slot to others.
func TestWaitGivesTheSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{Concurrent: 2, Wait: time.Minute, Tool: func(tool string) int { return map[string]int{"up__nap": 1}[tool] }})
		nap := gate.Charges{Server: "up", Tool: "up__nap"}
		first, _ := l.Enter(t.Context(), by("alice", "a"))
		if err := first.Charge(t.Context(), nap); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			s, err := l.Enter(t.Context(), by("alice", "a"))
			if err == nil {
				err = s.Charge(t.Context(), nap)
				s.Release(0)
			}
			done <- err
		}()
		synctest.Wait()
		if taken, _, _ := l.Places(); taken != 1 {
			t.Errorf("%d slots are taken while one call waits for its tool", taken)
		}
		first.Release(0)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if taken, waiting, _ := l.Places(); taken != 0 || waiting != 0 {
			t.Errorf("%d taken, %d wait", taken, waiting)
		}
	})
}

// TestWork: calls with much to work on take turns, and a call that waits for its turn leaves its
// slot to others. A caller that has nothing to work on yet does not wait.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(limits.Options{})
		enter := func(caller string) gate.Slot {
			s, err := l.Enter(t.Context(), by(caller, ""))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		var works []gate.Slot
		for range limits.Workers {
			s := enter("alice")
			if err := s.Work(t.Context(), 1<<20); err != nil {
				t.Fatal(err)
			}
			works = append(works, s)
		}
		var waits sync.WaitGroup
		for range 5 {
			waits.Go(func() {
				s := enter("alice")
				defer s.Release(0)
				if err := s.Work(t.Context(), 1<<20); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				if err := s.Rest(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if taken, _, _ := l.Places(); taken != int64(len(works)) {
			t.Errorf("%d slots are taken, %d calls are worked on", taken, len(works))
		}
		began, bob := time.Now(), enter("bob")
		if err := bob.Work(t.Context(), 1<<20); err != nil || time.Since(began) > 0 {
			t.Errorf("another caller waited %v: %v", time.Since(began), err)
		}
		bob.Release(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gone := enter("alice")
		if err := gone.Work(ctx, 1<<20); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		gone.Release(0)
		for _, s := range works {
			s.Release(0)
		}
		waits.Wait()
		if taken, waiting, _ := l.Places(); taken != 0 || waiting != 0 || l.Working() != 0 {
			t.Errorf("%d taken, %d wait, %d bytes are worked on", taken, waiting, l.Working())
		}
	})
}

// TestHammerShares has calls of several callers enter, wait, work, pause, give up and end in
// generated interleavings. Never more calls have slots than there are, but for 16 callers. In the
// end nothing is taken.
func TestHammerShares(t *testing.T) {
	first := seed.Of(t)
	for round := range uint64(30) {
		rnd := rand.New(rand.NewPCG(first, round))
		synctest.Test(t, func(t *testing.T) {
			most := 1 + rnd.IntN(6)
			l := limits.New(limits.Options{
				Concurrent: most, Session: 3, Wait: time.Second, Queue: rnd.IntN(30),
				Tool: func(tool string) int { return map[string]int{"up__a": 2}[tool] }, Server: func(string) int { return 4 },
			})
			var all sync.WaitGroup
			for range 200 {
				caller, tool, step := fmt.Sprint(rnd.IntN(1+rnd.IntN(30))), string("ab"[rnd.IntN(2)]), time.Duration(rnd.Int64N(int64(2*time.Second)))
				kind, patience := rnd.IntN(5), time.Duration(rnd.Int64N(int64(10*time.Second)))
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					s, err := l.Enter(ctx, by(caller, tool))
					if err != nil {
						return
					}
					defer s.Release(0)
					if kind > 2 && s.Work(ctx, 1<<20) != nil {
						return
					}
					time.Sleep(step / 4)
					if s.Rest(ctx) != nil || s.Charge(ctx, gate.Charges{Server: "up", Tool: "up__" + tool}) != nil {
						return
					}
					if taken, _, _ := l.Places(); taken > int64(most+fair.Extras) {
						t.Errorf("%d calls at once, of %d", taken, most)
					}
					resume := s.Pause()
					time.Sleep(step)
					switch {
					case kind == 0: // it ends while it is away
					case resume != nil:
						_ = resume(ctx)
					}
					if kind == 4 && s.Work(ctx, 1<<20) == nil {
						time.Sleep(step / 4)
					}
				})
				time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
			}
			all.Wait()
			if taken, waiting, _ := l.Places(); taken != 0 || waiting != 0 || l.Working() != 0 || l.Away() != 0 {
				t.Errorf("%d taken, %d wait, %d bytes are worked on, %d away", taken, waiting, l.Working(), l.Away())
			}
		})
	}
}
