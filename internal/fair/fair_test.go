package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/internal/fair"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

type demand = fair.Demand[string, string]

// of is what a caller takes: one slot of each bound, of "NAME=MOST".
func of(caller, lane string, most int64, bounds ...string) *demand {
	d := &demand{Caller: caller, Lane: lane}
	for _, b := range bounds {
		d.Add(b, most, 1)
	}
	return d
}

// TestBound follows generated takes and gives of several callers, and holds what a bound says of
// them against the rules.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := seed.Rand(t)
		for range 300 {
			b := fair.Bound[int]{Most: rnd.Int64N(12) + 1}
			has, called := map[int]int64{}, map[int]time.Time{}
			var extras []int
			for range 300 {
				time.Sleep(time.Duration(rnd.Int64N(int64(10 * time.Second))))
				k, n, taken := rnd.IntN(40), 1+rnd.Int64N(3), int64(0)
				for _, h := range has {
					taken += h
				}
				if has[k] > 0 && rnd.IntN(2) == 0 {
					n = 1 + rnd.Int64N(has[k])
					b.Give(k, n)
					has[k] -= n
					if has[k] == 0 {
						extras = slices.DeleteFunc(extras, func(o int) bool { return o == k })
					}
					extras = extras[max(0, len(extras)-int(max(0, taken-n-b.Most))):]
					continue
				}
				b.Visit(k, time.Now())
				called[k] = time.Now()
				shared := false
				for other, at := range called {
					shared = shared || other != k && time.Since(at) < time.Minute
				}
				fits := taken+n <= b.Most
				share := has[k] == 0 || !shared || has[k]+n <= b.Most/2
				want := fits && share || has[k] == 0 && len(extras) < fair.Extras
				if got := b.May(k, n); got != want {
					t.Fatalf("most %d, taken %d, caller has %d and asks for %d, %d extras, shared %t: may %t, want %t", b.Most, taken, has[k], n, len(extras), shared, got, want)
				}
				if want {
					if !fits {
						extras = append(extras, k)
					}
					b.Take(k, n)
					has[k] += n
				}
				if b.Has(k) != has[k] {
					t.Fatalf("the caller has %d, want %d", b.Has(k), has[k])
				}
			}
		}
	})
}

// TestQueue has callers take and give slots in generated interleavings, with calls that end while
// they wait, that give up, and that come back. At each rest a caller that has nothing waits only if
// all extra slots are out, and nothing waits that could go on. In the end nothing is taken.
func TestQueue(t *testing.T) {
	first := seed.Of(t)
	for round := range uint64(60) {
		rnd := rand.New(rand.NewPCG(first, round))
		synctest.Test(t, func(t *testing.T) { follow(t, rnd) })
	}
}

func follow(t *testing.T, rnd *rand.Rand) {
	const session = 8
	most := rnd.Int64N(10) + 1
	q := fair.NewQueue[string, string](rnd.IntN(40))
	var mu sync.Mutex
	has, waiting := map[string]int{}, map[string]int{}
	extras := 0
	var wg sync.WaitGroup
	for range 60 + rnd.IntN(100) {
		caller, lane := fmt.Sprint(rnd.IntN(1+rnd.IntN(40))), fmt.Sprint(rnd.IntN(3))
		lasts, gives, tool := time.Duration(rnd.Int64N(int64(3*time.Second))), time.Duration(rnd.Int64N(int64(2*time.Second))), rnd.IntN(3) == 0
		patience := time.Duration(rnd.Int64N(int64(4 * time.Second)))
		away := rnd.IntN(3) == 0
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), gives+lasts)
			defer cancel()
			d := of(caller, lane, most, "all")
			if tool {
				d.Add("tool", session, 1)
			}
			mu.Lock()
			none := has[caller] == 0
			waiting[caller]++
			mu.Unlock()
			began := time.Now()
			err := q.Take(ctx, d, patience)
			mu.Lock()
			defer mu.Unlock()
			waiting[caller]--
			if err != nil {
				var full *fair.Full[string]
				if !errors.As(err, &full) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if none && !tool && time.Since(began) == 0 && extras < fair.Extras && has[caller] == 0 && ctx.Err() == nil {
					t.Errorf("caller %s has nothing, %d extras are out, and it gets nothing", caller, extras)
				}
				return
			}
			hold := func() {
				has[caller]++
				total := 0
				for _, n := range has {
					total += n
				}
				extras = max(0, total-int(most))
				if extras > fair.Extras {
					t.Errorf("%d beyond the bound", extras)
				}
				mu.Unlock()
				time.Sleep(lasts)
				mu.Lock()
				has[caller]--
				extras = max(0, extras-1)
				mu.Unlock()
				q.Give(d)
				mu.Lock()
			}
			hold()
			if away {
				mu.Unlock()
				time.Sleep(gives)
				err := q.Again(context.Background(), d, 0)
				mu.Lock()
				if err != nil {
					t.Errorf("a call that comes back: %v", err)
				}
				hold()
			}
		})
		time.Sleep(time.Duration(rnd.Int64N(int64(200 * time.Millisecond))))
	}
	wg.Wait()
	for _, name := range []string{"all", "tool"} {
		if taken, waits := q.State(name); taken != 0 || waits != 0 {
			t.Errorf("%s: %d taken and %d wait in the end", name, taken, waits)
		}
	}
}

// TestNewCallers: a caller that has nothing gets a slot at once, whatever others have and however
// many of them wait, up to 16 of them. The next one is before all that have something.
func TestNewCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue[string, string](20)
		for range 4 {
			if !q.Try(of("greedy", "", 4, "all")) {
				t.Fatal("no slot")
			}
		}
		for range 100 {
			go func() { _ = q.Take(t.Context(), of("greedy", "", 4, "all"), time.Hour) }()
		}
		synctest.Wait()
		var extra *demand
		for i := range fair.Extras {
			extra = of(fmt.Sprint(i), "", 4, "all")
			if err := q.Take(t.Context(), extra, -1); err != nil {
				t.Fatalf("caller %d: %v", i, err)
			}
		}
		if err := q.Take(t.Context(), of("late", "", 4, "all"), -1); err == nil {
			t.Fatal("there are more extra slots than 16")
		}
		got := make(chan error, 1)
		go func() { got <- q.Take(t.Context(), of("late", "", 4, "all"), time.Hour) }()
		synctest.Wait()
		q.Give(extra)
		start := time.Now()
		if err := <-got; err != nil || time.Since(start) > 0 {
			t.Errorf("the next caller waited %v: %v", time.Since(start), err)
		}
	})
}

// TestHalf: once another caller has called, one that has half gets no more, for a minute.
func TestHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue[string, string](0)
		take := func(caller string) (n int) {
			for q.Take(t.Context(), of(caller, "", 8, "all"), -1) == nil {
				n++
			}
			return n
		}
		if n := take("bob"); n != 8 {
			t.Fatalf("the only caller gets %d of 8", n)
		}
		q = fair.NewQueue[string, string](0)
		d := of("bob", "", 8, "all")
		q.Try(d)
		q.Give(d)
		if n := take("alice"); n != 4 {
			t.Errorf("alice gets %d of 8 after bob has called", n)
		}
		time.Sleep(time.Minute)
		if n := take("alice"); n != 4 {
			t.Errorf("alice gets %d more a minute after bob has called", n)
		}
	})
}

// TestTurns: waiting callers take turns, and the lanes of each.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue[string, string](100)
		held := of("x", "", 3, "all")
		if !q.Try(held) || !q.Try(of("a", "", 3, "all")) || !q.Try(of("b", "", 3, "all")) {
			t.Fatal("no slot")
		}
		order := make(chan string, 10)
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, who := range []string{"a1", "a1", "a1", "a2", "b1", "b1", "a2"} {
			wg.Go(func() {
				d := of(who[:1], who[1:], 3, "all")
				if err := q.Take(t.Context(), d, time.Hour); err != nil {
					t.Error(err)
				}
				order <- who
				time.Sleep(time.Second)
				q.Give(d)
			})
			synctest.Wait()
		}
		time.Sleep(time.Minute) // what each has is no more than its share then
		q.Give(held)
		for i, want := range []string{"a1", "b1", "a2", "b1", "a1", "a2", "a1"} {
			if got := <-order; got != want {
				t.Errorf("%d: %s, want %s", i, got, want)
			}
		}
	})
}

// TestSweep: the queue remembers no bound and no caller for long.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue[string, string](0)
		for i := range 10_000 {
			time.Sleep(time.Second)
			d := of(fmt.Sprint(i), "", 1, "all", fmt.Sprint("of ", i))
			if !q.Try(d) {
				t.Fatal("no slot")
			}
			q.Give(d)
		}
		if bounds, callers := fair.Sizes(q, "all"); bounds > 300 || callers > 300 {
			t.Errorf("%d bounds, %d callers", bounds, callers)
		}
	})
}
