package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
)

// Sessions tests what several gateways know of sessions. Open returns it without sessions, as
// each of them has it.
func Sessions(t *testing.T, open func(*testing.T) []session.Shared) {
	for name, test := range map[string]func(*testing.T, []session.Shared){
		"a session that has read nothing":      testClean,
		"what one raises all read":             testRaised,
		"a session is its owner's alone":       testSessionOwners,
		"no label is lost":                     testAllLabels,
		"labels end without use":               testSessionExpiry,
		"a reset holds everywhere, and counts": testReset,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func keyOf(o gate.Owner) gate.SessionKey { return gate.SessionKey{Owner: o} }

func known(t *testing.T, s session.Shared, o gate.Owner) session.Known {
	t.Helper()
	n, err := s.Read(t.Context(), keyOf(o), time.Hour)
	must(t, err)
	return n
}

func raise(t *testing.T, s session.Shared, o gate.Owner, r session.Rise) session.Known {
	t.Helper()
	n, err := s.Raise(t.Context(), keyOf(o), time.Hour, r)
	must(t, err)
	return n
}

func testClean(t *testing.T, all []session.Shared) {
	for _, s := range all {
		n := known(t, s, alice)
		if n.Key != keyOf(alice) || len(n.Labels) > 0 || n.Top || len(n.Readers) > 0 || n.Resets > 0 {
			t.Errorf("%+v", n)
		}
		list, err := s.All(t.Context(), time.Hour, false)
		if err != nil || len(list) > 0 {
			t.Errorf("%+v, %v", list, err)
		}
	}
}

func testRaised(t *testing.T, all []session.Shared) {
	n := raise(t, all[0], alice, session.Rise{Labels: gate.NewLabels("private"), Call: "c1", Reader: "n1"})
	if !slices.Equal(n.Labels, gate.Labels{"private"}) || n.Top {
		t.Errorf("%+v", n)
	}
	n = raise(t, all[1], alice, session.Rise{Labels: gate.NewLabels("private", "untrusted"), Top: true, Call: "c2", Reader: "n2"})
	want := map[string]string{"private": "c1", "untrusted": "c2", "": "c2"}
	for i, s := range all {
		for _, n := range append(list(t, s), n, known(t, s, alice)) {
			if !slices.Equal(n.Labels, gate.Labels{"private", "untrusted"}) || !n.Top || n.Key != keyOf(alice) {
				t.Errorf("%d: %+v", i, n)
			}
			slices.Sort(n.Readers)
			if !slices.Equal(n.Readers, []string{"n1", "n2"}) || fmt.Sprint(n.Raised) != fmt.Sprint(want) {
				t.Errorf("%d: readers %v, raised %v", i, n.Readers, n.Raised)
			}
		}
	}
}

func list(t *testing.T, s session.Shared) []session.Known {
	t.Helper()
	all, err := s.All(t.Context(), time.Hour, false)
	must(t, err)
	return all
}

func testSessionOwners(t *testing.T, all []session.Shared) {
	raise(t, all[0], alice, session.Rise{Labels: gate.NewLabels("private"), Reader: "n1"})
	for _, o := range []gate.Owner{bob, other} {
		if n := known(t, all[1], o); len(n.Labels) > 0 {
			t.Errorf("%+v has %v", o, n.Labels)
		}
	}
	if n, err := all[1].Read(t.Context(), gate.SessionKey{Owner: alice, ID: "x"}, time.Hour); err != nil || len(n.Labels) > 0 {
		t.Errorf("another session has %v, %v", n.Labels, err)
	}
}

func testAllLabels(t *testing.T, all []session.Shared) {
	const each = 15
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			for j := range each {
				for _, o := range []gate.Owner{alice, bob} {
					r := session.Rise{Labels: gate.NewLabels(fmt.Sprintf("l%d-%d", i, j)), Call: "c", Reader: fmt.Sprint(i)}
					n, err := s.Raise(t.Context(), keyOf(o), time.Hour, r)
					if err != nil || !n.Labels.Cover(r.Labels) {
						t.Errorf("%v, %v", n.Labels, err)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, o := range []gate.Owner{alice, bob} {
		if n := known(t, all[0], o); len(n.Labels) != each*len(all) || len(n.Readers) != len(all) {
			t.Errorf("%d labels of %d readers are kept", len(n.Labels), len(n.Readers))
		}
	}
}

func testSessionExpiry(t *testing.T, all []session.Shared) {
	raise(t, all[0], alice, session.Rise{Labels: gate.NewLabels("private"), Top: true, Reader: "n1"})
	n, err := all[1].Read(t.Context(), keyOf(alice), 0) // every session has ended
	if err != nil || len(n.Labels) > 0 || n.Top || len(n.Readers) > 0 {
		t.Errorf("%+v, %v", n, err)
	}
	n, err = all[1].Raise(t.Context(), keyOf(alice), 0, session.Rise{Labels: gate.NewLabels("untrusted"), Reader: "n2"})
	if err != nil || !slices.Equal(n.Labels, gate.Labels{"untrusted"}) || n.Top || !slices.Equal(n.Readers, []string{"n2"}) {
		t.Errorf("%+v, %v", n, err)
	}
}

func testReset(t *testing.T, all []session.Shared) {
	must(t, all[0].Reset(t.Context(), keyOf(alice))) // nothing to take
	raise(t, all[0], alice, session.Rise{Labels: gate.NewLabels("private"), Top: true, Call: "c1", Reader: "n1"})
	before, generation := known(t, all[0], alice).Resets, known(t, all[0], alice).Generation
	must(t, all[1].Reset(t.Context(), keyOf(alice)))
	for i, s := range all {
		if n := known(t, s, alice); len(n.Labels) > 0 || n.Top || len(n.Readers) > 0 || n.Resets != before+1 {
			t.Errorf("%d: %+v", i, n)
		}
	}
	if n := known(t, all[2], alice); n.Generation <= generation {
		t.Errorf("generation %d after %d", n.Generation, generation)
	}
	raise(t, all[0], bob, session.Rise{Labels: gate.NewLabels("private"), Reader: "n1"})
	if list, err := all[2].All(t.Context(), time.Hour, true); err != nil || len(list) != 1 || list[0].Key != keyOf(alice) {
		t.Errorf("%+v were reset, %v", list, err)
	}
	n := raise(t, all[2], alice, session.Rise{Labels: gate.NewLabels("private"), Call: "c2", Reader: "n3"})
	if !slices.Equal(n.Labels, gate.Labels{"private"}) || n.Top || n.Resets != before+1 || n.Raised["private"] != "c2" {
		t.Errorf("%+v", n)
	}
}
