package session_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
)

// tell teaches a session the values of a document.
func tell(tb testing.TB, s *session.Sessions, k gate.SessionKey, doc string, from provenance.Source, labels ...string) {
	tb.Helper()
	if err := s.Learn(tb.Context(), k, gate.Lesson{Labels: gate.NewLabels(labels...), From: gate.MustDoc(doc), Source: from}); err != nil {
		tb.Fatal(err)
	}
}

func list(prefix string, n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%q", fmt.Sprint(prefix, i)))
	}
	return "[" + strings.Join(names, ",") + "]"
}

func TestValuesAreKeptWithTheLabels(t *testing.T) {
	s, k := session.New(session.Options{}), key("s1")
	tell(t, s, k, `["bob"]`, provenance.FromTrusted)
	before := view(t, s, k)
	tell(t, s, k, `["bob","eve"]`, provenance.FromUntrusted, provenance.Untrusted)
	now := view(t, s, k)
	if now.Values.OfText("bob") != provenance.FromTrusted|provenance.FromUntrusted || now.Values.OfText("eve") != provenance.FromUntrusted || !now.Tainted() {
		t.Errorf("session = %+v", now)
	}
	if before.Values.OfText("eve") != 0 || before.Tainted() || now.Version <= before.Version {
		t.Errorf("a view has changed, or its version has not: %+v, %+v", before, now)
	}
	if other := view(t, s, key("s2")); other.Values.Len() != 0 {
		t.Error("another session knows the values")
	}
}

func TestAdmitIsStaleWhenAnArgumentIsMetOutside(t *testing.T) {
	s, k := session.New(session.Options{}), key("s1")
	learn(t, s, k, provenance.Untrusted)
	v := view(t, s, k)
	tell(t, s, k, `["eve"]`, provenance.FromUntrusted)
	for args, stale := range map[string]bool{`{"to":"eve"}`: true, `{"to":["bob","eve"]}`: true, `{"to":"bob"}`: false, `{}`: false} {
		_, err := s.Admit(t.Context(), v, &gate.Call{ID: args, Args: gate.MustDoc(args)}, nil)
		if errors.Is(err, gate.ErrStale) != stale {
			t.Errorf("%s: %v", args, err)
		}
	}
	tell(t, s, k, `["bob"]`, provenance.FromTrusted) // trust that comes later does no harm
	if _, err := s.Admit(t.Context(), v, &gate.Call{ID: "late", Args: gate.MustDoc(`{"to":"bob"}`)}, nil); err != nil {
		t.Error(err)
	}
}

// A session that meets more than is kept is Top: it counts as having read
// everything, what it knew stays known, and it takes no more memory.
func TestMoreValuesThanAreKept(t *testing.T) {
	s, k := session.New(session.Options{Values: 100}), key("s1")
	tell(t, s, k, `["bob"]`, provenance.FromPrompt)
	tell(t, s, k, list("v", 200), provenance.FromUntrusted)
	v := view(t, s, k)
	if !v.Top || !v.Tainted() || v.Values.Len() > 100 {
		t.Errorf("top %v, %d values", v.Top, v.Values.Len())
	}
	if got := v.Values.OfText("bob"); got != provenance.FromPrompt|provenance.FromUntrusted {
		t.Errorf("bob: %v", got.Names())
	}
	if got := v.Values.OfText("never met"); got != provenance.FromUntrusted {
		t.Errorf("never met: %v", got.Names())
	}
	for i := range 50 {
		tell(t, s, k, list(fmt.Sprint("more", i, "-"), 10), provenance.FromTrusted)
	}
	if v := view(t, s, k); v.Values.Len() > 100 || !v.Top {
		t.Errorf("top %v, %d values", v.Top, v.Values.Len())
	}
}

func TestNoValuesAreKept(t *testing.T) {
	s, k := session.New(session.Options{Values: -1}), key("s1")
	tell(t, s, k, `["bob"]`, provenance.FromPrompt)
	if v := view(t, s, k); v.Values.Len() != 0 || v.Top {
		t.Errorf("session = %+v", v)
	}
}

// All sessions together keep a bounded number of values: the one that was used
// longest ago is dropped, and comes back as Top if it had read anything.
func TestMoreValuesThanAllSessionsKeep(t *testing.T) {
	s := session.New(session.Options{AllValues: 100})
	tell(t, s, key("tainted"), list("a", 40), provenance.FromUntrusted, provenance.Untrusted)
	tell(t, s, key("clean"), list("b", 40), provenance.FromTrusted)
	tell(t, s, key("new"), list("c", 90), provenance.FromTrusted)
	if v := view(t, s, key("tainted")); !v.Top || v.Values.OfText("a1") != provenance.FromUntrusted {
		t.Errorf("tainted: %+v", v)
	}
	if v := view(t, s, key("clean")); v.Top || v.Values.Len() != 0 {
		t.Errorf("clean: %+v", v)
	}
	if v := view(t, s, key("new")); !v.Values.OfText("c89").Trusted() {
		t.Errorf("new: %+v", v)
	}
}

// Many teach one session at once, while others look: nothing is lost, and no view
// has the values of a lesson without its labels.
func TestValuesHammer(t *testing.T) {
	s, k := session.New(session.Options{}), key("s1")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				tell(t, s, k, fmt.Sprintf(`["v%d-%d"]`, w, i), provenance.FromUntrusted, provenance.Untrusted)
				if v := view(t, s, k); v.Values.Len() > 0 && !v.Tainted() {
					t.Error("values without their labels")
				}
			}
		})
	}
	wg.Wait()
	v := view(t, s, k)
	for w := range 8 {
		for i := range 50 {
			if v.Values.OfText(fmt.Sprintf("v%d-%d", w, i)) != provenance.FromUntrusted {
				t.Fatalf("v%d-%d is lost", w, i)
			}
		}
	}
}
