package session_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func key(id string) gate.SessionKey {
	return gate.SessionKey{Owner: gate.Owner{ID: "alice"}, ID: id}
}

func view(tb testing.TB, s *session.Sessions, k gate.SessionKey) gate.Session {
	tb.Helper()
	state, err := s.View(tb.Context(), k)
	if err != nil {
		tb.Fatal(err)
	}
	return state
}

func learn(tb testing.TB, s *session.Sessions, k gate.SessionKey, labels ...string) {
	tb.Helper()
	if err := s.Learn(tb.Context(), k, gate.Lesson{Labels: gate.NewLabels(labels...)}); err != nil {
		tb.Fatal(err)
	}
}

func TestAdmit(t *testing.T) {
	tests := map[string]struct {
		viewed, since []string // labels at the view, and learned after it
		adds          []string // labels of the decision
		err           error
		after         []string
	}{
		"a fresh session":                       {nil, nil, nil, nil, nil},
		"a decision adds labels":                {nil, nil, []string{"a"}, nil, []string{"a"}},
		"a label has risen":                     {nil, []string{"a"}, []string{"b"}, gate.ErrStale, []string{"a"}},
		"another label has risen":               {[]string{"a"}, []string{"b"}, nil, gate.ErrStale, []string{"a", "b"}},
		"a label was learned that was there":    {[]string{"a"}, []string{"a"}, nil, nil, []string{"a"}},
		"a decision adds a label that is there": {[]string{"a"}, nil, []string{"a"}, nil, []string{"a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, k := session.New(session.Options{}), key("s1")
			learn(t, s, k, tt.viewed...)
			v := view(t, s, k)
			learn(t, s, k, tt.since...)
			now, err := s.Admit(t.Context(), v, &gate.Call{ID: "c1"}, gate.NewLabels(tt.adds...))
			if !errors.Is(err, tt.err) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(gate.NewLabels(tt.after...), now.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(now, view(t, s, k)); diff != "" {
				t.Errorf("what Admit returned is not what View does (-admit +view):\n%s", diff)
			}
		})
	}
}

func TestAdmitTwiceIsOneAdmission(t *testing.T) {
	s, k := session.New(session.Options{}), key("s1")
	v, c := view(t, s, k), &gate.Call{ID: "c1"}
	if _, err := s.Admit(t.Context(), v, c, nil); err != nil {
		t.Fatal(err)
	}
	learn(t, s, k, "a")
	if now, err := s.Admit(t.Context(), v, c, nil); err != nil || !now.Labels.Cover(gate.NewLabels("a")) {
		t.Errorf("the same call again: %v, %v", now, err)
	}
	if _, err := s.Admit(t.Context(), v, &gate.Call{ID: "c2"}, nil); !errors.Is(err, gate.ErrStale) {
		t.Errorf("another call: %v", err)
	}
	if _, err := s.Admit(t.Context(), view(t, s, key("s2")), c, nil); err != nil {
		t.Errorf("in another session: %v", err)
	}

	// A stale one was none, and is held against the labels each time.
	stale := &gate.Call{ID: "c3"}
	for range 3 {
		if _, err := s.Admit(t.Context(), v, stale, nil); !errors.Is(err, gate.ErrStale) {
			t.Errorf("a stale call: %v", err)
		}
	}

	// What is remembered is bounded; what is forgotten counts as new.
	for i := range 5000 {
		if _, err := s.Admit(t.Context(), view(t, s, k), &gate.Call{ID: fmt.Sprint("more", i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Admit(t.Context(), v, c, nil); !errors.Is(err, gate.ErrStale) {
		t.Errorf("after 5000 calls: %v", err)
	}
}

func TestTooManyLabelsAreAll(t *testing.T) {
	s, k := session.New(session.Options{}), key("s1")
	v := view(t, s, k)
	for i := range 100 {
		learn(t, s, k, fmt.Sprint("label", i))
		now := view(t, s, k)
		if provenance.TooMany(now.Labels) || !now.Labels.Cover(v.Labels) || !now.Top && len(now.Labels) != i+1 {
			t.Fatalf("after %d labels: %d of them, top %v", i+1, len(now.Labels), now.Top)
		}
		v = now
	}
	if !v.Top {
		t.Error("the session is not top")
	}
	other := view(t, s, key("s2"))
	other.Key = k // decided on what another session has read
	if _, err := s.Admit(t.Context(), other, &gate.Call{ID: "c1"}, nil); !errors.Is(err, gate.ErrStale) {
		t.Errorf("err = %v", err)
	}
}

func TestSessionsAreApart(t *testing.T) {
	s := session.New(session.Options{})
	learn(t, s, key("s1"), "a")
	for _, k := range []gate.SessionKey{
		key("s2"), key(""),
		{Owner: gate.Owner{ID: "bob"}, ID: "s1"},
		{Owner: gate.Owner{Tenant: "t", ID: "alice"}, ID: "s1"},
	} {
		if v := view(t, s, k); len(v.Labels) > 0 || v.Top {
			t.Errorf("%v: %v", k, v)
		}
	}
}

func TestSessionsEndWithoutUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(session.Options{TTL: time.Hour})
		learn(t, s, key("used"), "a")
		learn(t, s, key("left"), "a")
		for range 3 {
			time.Sleep(40 * time.Minute)
			view(t, s, key("used"))
		}
		if v := view(t, s, key("used")); len(v.Labels) != 1 {
			t.Errorf("the session in use: %v", v)
		}
		if v := view(t, s, key("left")); len(v.Labels) != 0 || v.Top {
			t.Errorf("the session out of use: %v", v)
		}
	})
}

// A call that was decided on labels takes them along when its session ends.
func TestAdmitAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := session.New(session.Options{TTL: time.Hour}), key("s1")
		learn(t, s, k, "a")
		v := view(t, s, k)
		time.Sleep(2 * time.Hour)
		now, err := s.Admit(t.Context(), v, &gate.Call{ID: "c1"}, gate.NewLabels("b"))
		if err != nil || !now.Labels.Cover(gate.NewLabels("a", "b")) {
			t.Errorf("admitted to %v, %v", now, err)
		}
		if now.Top {
			t.Error("the session is top")
		}
		v.Top = true
		time.Sleep(2 * time.Hour)
		if now, err := s.Admit(t.Context(), v, &gate.Call{ID: "c2"}, nil); err != nil || !now.Top {
			t.Errorf("a top session that ended is admitted to %v, %v", now, err)
		}
	})
}

// To drop a session because there are too many is not to forget what it read.
func TestDroppedSessionsComeBackAsTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept, all = 10, 100
		s := session.New(session.Options{Max: kept, TTL: time.Hour})
		for i := range all {
			learn(t, s, key(fmt.Sprint(i)), "a")
			time.Sleep(time.Microsecond)
		}
		for i := range kept {
			if v := view(t, s, key(fmt.Sprint(all-1-i))); v.Top || len(v.Labels) != 1 {
				t.Errorf("one of the last: %v", v)
			}
		}
		old := gate.Session{Key: key("0")} // viewed before anything was learned
		if _, err := s.Admit(t.Context(), old, &gate.Call{ID: "c1"}, nil); !errors.Is(err, gate.ErrStale) {
			t.Errorf("an old view of a dropped session: %v", err)
		}
		for i := range all - kept {
			if v := view(t, s, key(fmt.Sprint(i))); !v.Top {
				t.Errorf("dropped session: %v", v)
			}
		}
		if v := view(t, s, key("never seen")); v.Top {
			t.Errorf("a session that was never seen: %v", v)
		}

		// Used all the time, it stays so for longer than the filter remembers.
		for range 10 {
			time.Sleep(30 * time.Minute)
			if v := view(t, s, key("0")); !v.Top {
				t.Fatal("a dropped session lost its mark while it was in use")
			}
		}
		time.Sleep(3 * time.Hour)
		if v := view(t, s, key("0")); v.Top {
			t.Error("a dropped session has no end")
		}
	})
}

func TestTheSessionThatWasUsedLongestAgoIsDropped(t *testing.T) {
	s := session.New(session.Options{Max: 2})
	learn(t, s, key("s1"), "a")
	learn(t, s, key("s2"), "a")
	view(t, s, key("s1"))
	learn(t, s, key("s3"), "a")
	if v := view(t, s, key("s1")); v.Top {
		t.Errorf("the one that was used: %v", v)
	}
	if v := view(t, s, key("s2")); !v.Top {
		t.Errorf("the one that was not: %v", v)
	}
}

// The mark of a dropped session lasts at least as long as the session would
// have, whenever within the life of a filter's generation it was dropped.
func TestDroppedSessionsAreRememberedForTheirLife(t *testing.T) {
	for _, dropped := range []time.Duration{0, 10 * time.Minute, 59 * time.Minute, 61 * time.Minute, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := session.New(session.Options{Max: 1, TTL: time.Hour})
			learn(t, s, key("x"), "a")
			learn(t, s, key("y"), "a") // begins a generation
			time.Sleep(dropped)
			learn(t, s, key("victim"), "a")
			learn(t, s, key("z"), "a")
			time.Sleep(time.Hour - time.Second)
			if v := view(t, s, key("victim")); !v.Top {
				t.Errorf("dropped after %v: forgotten", dropped)
			}
		})
	}
}

// Sessions that have read nothing take no place from those that have.
func TestCleanSessionsCostNothing(t *testing.T) {
	s := session.New(session.Options{Max: 2})
	learn(t, s, key("s1"), "a")
	for i := range 10_000 {
		k := key(fmt.Sprint("clean", i))
		if _, err := s.Admit(t.Context(), view(t, s, k), &gate.Call{ID: "c1"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if v := view(t, s, key("s1")); v.Top || len(v.Labels) != 1 {
		t.Errorf("session = %v", v)
	}
}

// TestHistories runs random interleavings of calls against a model. Each call
// views, then is admitted, then learns; between its view and its admission
// others may have taught the session something. Labels must never fall, and a
// call must not be admitted that was decided without a label which the session
// had.
//
// To see that the test can fail, remove the condition before gate.ErrStale in
// Admit: calls are admitted on stale labels. Replace Join in raise by its
// argument: labels fall.
func TestHistories(t *testing.T) {
	r := seed.Rand(t)
	stale := 0
	for range 300 {
		stale += history(t, r)
	}
	if stale == 0 {
		t.Error("no call was stale: the histories test nothing")
	}
}

// history returns how many calls were stale.
func history(t *testing.T, r *rand.Rand) (stale int) {
	t.Helper()
	s := session.New(session.Options{Max: 1 + r.IntN(3)})
	model := map[string]gate.Labels{}
	views := map[string]gate.Session{} // of calls between view and admission
	for step := range 200 {
		k := key(fmt.Sprint("s", r.IntN(4)))
		labels := gate.NewLabels(fmt.Sprint("l", r.IntN(8)))
		id := fmt.Sprint("c", r.IntN(5), k.ID)
		switch r.IntN(3) {
		case 0:
			views[id] = view(t, s, k)
		case 1:
			v, viewed := views[id]
			if !viewed {
				continue
			}
			delete(views, id)
			_, err := s.Admit(t.Context(), v, &gate.Call{ID: fmt.Sprint(id, step)}, labels)
			seen := v.Top || v.Labels.Cover(model[k.ID])
			if err == nil && !seen {
				t.Fatalf("step %d: admitted with %v in a session with %v", step, v.Labels, model[k.ID])
			}
			if err != nil {
				stale++
				continue
			}
			model[k.ID] = model[k.ID].Join(labels)
		case 2:
			learn(t, s, k, labels...)
			model[k.ID] = model[k.ID].Join(labels)
		}
		if v := view(t, s, k); !v.Top && !v.Labels.Cover(model[k.ID]) {
			t.Fatalf("step %d: session %s fell from %v to %v", step, k.ID, model[k.ID], v.Labels)
		}
	}
	return stale
}

// Of calls that run at once and each may only run in a session without its own
// label, one is admitted.
func TestHammer(t *testing.T) {
	s := session.New(session.Options{})
	for round := range 200 {
		k := key(fmt.Sprint(round))
		var admitted sync.Map
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				v := view(t, s, k)
				if len(v.Labels) > 0 {
					return
				}
				label := gate.NewLabels(fmt.Sprint("w", w))
				if _, err := s.Admit(t.Context(), v, &gate.Call{ID: fmt.Sprint(round, w)}, label); err == nil {
					admitted.Store(w, true)
				}
				learn(t, s, key("all"), label...)
			})
		}
		wg.Wait()
		n := 0
		for range admitted.Range {
			n++
		}
		if n != 1 {
			t.Fatalf("%d calls were admitted", n)
		}
	}
}

func BenchmarkView(b *testing.B) {
	s := session.New(session.Options{})
	for i := range 10_000 {
		learn(b, s, key(fmt.Sprint("session", i)), provenance.Untrusted)
	}
	k, clean := key("session77"), key("clean")
	for name, k := range map[string]gate.SessionKey{"labelled": k, "clean": clean} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.View(b.Context(), k); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkCall measures all that a call costs here: view, admission, learning.
func BenchmarkCall(b *testing.B) {
	s := session.New(session.Options{})
	k, labels := key("s1"), gate.NewLabels(provenance.Untrusted)
	b.ReportAllocs()
	for b.Loop() {
		c := gate.Call{ID: gate.NewID()}
		v, err := s.View(b.Context(), k)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Admit(b.Context(), v, &c, nil); err != nil {
			b.Fatal(err)
		}
		if err := s.Learn(b.Context(), k, gate.Lesson{Labels: labels}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSetTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(session.Options{TTL: time.Hour})
		learn(t, s, key("k"), "a")
		s.SetTTL(3 * time.Hour)
		time.Sleep(2 * time.Hour)
		if v := view(t, s, key("k")); len(v.Labels) != 1 {
			t.Errorf("within the longer time: %v", v)
		}
		time.Sleep(time.Hour / 2)
		s.SetTTL(time.Minute)
		if v := view(t, s, key("k")); len(v.Labels) != 0 || v.Top {
			t.Errorf("beyond the shorter time: %v", v)
		}
	})
}
