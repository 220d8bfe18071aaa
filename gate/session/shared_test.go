package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func TestCommon(t *testing.T) {
	storetest.Sessions(t, func(*testing.T) []session.Shared {
		c := new(session.Common)
		return []session.Shared{c, c, c}
	})
}

// gateways returns several that share their sessions.
func gateways(shared session.Shared, n int) (all []*session.Sessions) {
	for i := range n {
		var followed atomic.Uint64
		all = append(all, session.New(session.Options{
			Shared: shared, Reader: fmt.Sprintf("n%d", i), Followed: followed.Load,
			Follow: func(_ context.Context, to uint64) error { followed.Store(to); return nil },
		}))
	}
	return all
}

// admit has a call admitted as the gate does: it decides again as long as the session has changed.
func admit(t *testing.T, s *session.Sessions, k gate.SessionKey, labels ...string) (v gate.Session, decided int) {
	t.Helper()
	v = view(t, s, k)
	for decided = 1; ; decided++ {
		now, err := s.Admit(t.Context(), v, &gate.Call{ID: gate.NewID()}, gate.NewLabels(labels...))
		if err == nil {
			return v, decided
		}
		if !errors.Is(err, gate.ErrStale) || decided > 3 {
			t.Fatalf("decided %d times: %v", decided, err)
		}
		v = now
	}
}

func lost(s gate.Session) bool { return s.Values == s.Values.Lost() }

// What one gateway reads the others know when they admit the next call, and of its values they
// trust none.
func TestReadHereSendThere(t *testing.T) {
	all, k := gateways(new(session.Common), 2), key("")
	a, b := all[0], all[1]
	if v, decided := admit(t, b, k); len(v.Labels) > 0 || lost(v) || decided != 1 {
		t.Errorf("a clean session: %v, decided %d times", v.Labels, decided)
	}
	before := view(t, b, k)
	admit(t, a, k, provenance.Untrusted)
	if _, err := b.Admit(t.Context(), before, &gate.Call{ID: "c"}, nil); !errors.Is(err, gate.ErrStale) {
		t.Fatalf("a call was admitted that was decided on before the other gateway had read: %v", err)
	}
	if v, decided := admit(t, a, k, provenance.Untrusted); lost(v) || decided != 1 {
		t.Errorf("the gateway that has met all values: decided %d times, values lost: %v", decided, lost(v))
	}
	v, _ := admit(t, b, k)
	if !slices.Equal(v.Labels, gate.Labels{provenance.Untrusted}) || !lost(v) {
		t.Errorf("the other decides with %v, values lost: %v", v.Labels, lost(v))
	}
	// A call of this session on the other gateway brings values that the first does not know. The
	// label is there already.
	if v, decided := admit(t, a, k); !lost(v) || decided != 2 {
		t.Errorf("decided %d times, values lost: %v", decided, lost(v))
	}
}

// What a result teaches beyond what its call was admitted with is known everywhere before its
// client gets it.
func TestLessonsAreShared(t *testing.T) {
	for name, l := range map[string]gate.Lesson{"a label": {Labels: gate.NewLabels("private")}, "everything": {Top: true}} {
		t.Run(name, func(t *testing.T) {
			all, k := gateways(new(session.Common), 2), key("")
			if err := all[0].Learn(t.Context(), k, l); err != nil {
				t.Fatal(err)
			}
			if v, _ := admit(t, all[1], k); !v.Labels.Cover(l.Labels) || v.Top != l.Top || !lost(v) {
				t.Errorf("%v, everything: %v, values lost: %v", v.Labels, v.Top, lost(v))
			}
		})
	}
}

// A reset on one gateway takes from all what was read before, and nothing that is read later.
func TestResetIsShared(t *testing.T) {
	all, k := gateways(new(session.Common), 2), key("")
	a, b := all[0], all[1]
	admit(t, a, k, "private")
	if err := b.Refresh(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	list := b.List()
	if len(list) != 1 || !slices.Equal(list[0].Labels, gate.Labels{"private"}) || list[0].Raised["private"] == "" {
		t.Fatalf("the other gateway lists %+v", list)
	}
	if err := b.Reset(t.Context(), k, list[0].Version, nil); err != nil {
		t.Fatal(err)
	}
	// A call that was decided on before goes on with what its session had read then.
	if v, _ := admit(t, b, k); len(v.Labels) > 0 || lost(v) {
		t.Errorf("after the reset: %v, values lost: %v", v.Labels, lost(v))
	}
	stale := view(t, a, k)
	again, err := a.Admit(t.Context(), stale, &gate.Call{ID: "c"}, nil)
	if !errors.Is(err, gate.ErrStale) {
		t.Fatal(err)
	}
	if _, err := a.Admit(t.Context(), again, &gate.Call{ID: "c"}, nil); err != nil {
		t.Fatal(err)
	}
	if v, _ := admit(t, b, k); !slices.Equal(v.Labels, gate.Labels{"private"}) {
		t.Errorf("after a call of before: %v", v.Labels)
	}
}

// A call is admitted only once its gateway has done what its generation asks for.
func TestGenerations(t *testing.T) {
	c, failed := new(session.Common), errors.New("it cannot be read")
	var at atomic.Uint64
	var err error
	s := session.New(session.Options{Shared: c, Reader: "n", Followed: at.Load, Follow: func(_ context.Context, to uint64) error {
		at.Store(to)
		return err
	}})
	if _, decided := admit(t, s, key("")); decided != 1 {
		t.Errorf("decided %d times", decided)
	}
	c.Change()
	if _, decided := admit(t, s, key("")); decided != 2 {
		t.Errorf("decided %d times after a change", decided)
	}
	// Something else brings the gateway up to date after the call was decided on, and before it is admitted.
	early := view(t, s, key(""))
	c.Change()
	admit(t, s, key(""))
	if _, got := s.Admit(t.Context(), early, &gate.Call{ID: "c"}, nil); !errors.Is(got, gate.ErrStale) {
		t.Errorf("a call that was decided on before a change that was followed meanwhile: %v", got)
	}
	err = failed
	if _, got := s.Admit(t.Context(), view(t, s, key("")), &gate.Call{ID: "c"}, nil); !errors.Is(got, failed) {
		t.Errorf("a call of a gateway that cannot follow: %v", got)
	}
}

// away is a Shared that cannot be reached.
type away struct{ session.Shared }

var errAway = errors.New("away")

func (away) Read(context.Context, gate.SessionKey, time.Duration) (session.Known, error) {
	return session.Known{}, errAway
}

func TestSharedAway(t *testing.T) {
	s := gateways(away{new(session.Common)}, 1)[0]
	if _, err := s.Admit(t.Context(), view(t, s, key("")), &gate.Call{ID: "c"}, nil); !errors.Is(err, errAway) {
		t.Errorf("a call: %v", err)
	}
	if err := s.Learn(t.Context(), key(""), gate.Lesson{Labels: gate.NewLabels("private")}); !errors.Is(err, errAway) {
		t.Errorf("a lesson: %v", err)
	}
}

// TestSharedLikeOne: whatever gateway each call comes to, it is decided on with all labels that
// one gateway would have.
func TestSharedLikeOne(t *testing.T) {
	r := seed.Rand(t)
	for range 200 {
		all, one := gateways(new(session.Common), 3), session.New(session.Options{})
		for range 30 {
			k := key(fmt.Sprint(r.IntN(3)))
			s := all[r.IntN(len(all))]
			var labels []string
			if r.IntN(3) == 0 {
				labels = []string{fmt.Sprint("l", r.IntN(4))}
			}
			if r.IntN(4) == 0 {
				learn(t, s, k, labels...)
				learn(t, one, k, labels...)
				continue
			}
			v, _ := admit(t, s, k, labels...)
			w, _ := admit(t, one, k, labels...)
			if !slices.Equal(v.Labels, w.Labels) || v.Top != w.Top {
				t.Fatalf("decided with %v, on one gateway with %v", v.Labels, w.Labels)
			}
		}
	}
}

// A call that is denied follows other gateways before it is refused.
func TestRenew(t *testing.T) {
	common := new(session.Common)
	all, k := gateways(common, 2), key("")
	v := view(t, all[0], k)
	if _, changed := all[0].Renew(t.Context(), v); changed {
		t.Error("something has changed")
	}
	common.Change()
	now, changed := all[0].Renew(t.Context(), v)
	if !changed || now.Generation == v.Generation {
		t.Errorf("generation %d after %d, changed: %t", now.Generation, v.Generation, changed)
	}
	if _, changed := all[0].Renew(t.Context(), now); changed {
		t.Error("something has changed again")
	}
}
