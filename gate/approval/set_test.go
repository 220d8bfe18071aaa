package approval_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
)

// inSession puts a question into a session of its caller.
func inSession(id string) func(*gate.Question) {
	return func(q *gate.Question) {
		q.Call.Client = nil
		q.Call.Session = gate.SessionKey{Owner: q.Call.Who.Owner, ID: id}
	}
}

func args(text string) func(*gate.Question) {
	return func(q *gate.Question) { q.Call.Args = gate.MustDoc(text) }
}

// proposal is a question about calls.
func proposal(id string, of ...gate.Question) gate.Question {
	q := ask(id, inSession("s"), args(`{"calls":[]}`))
	q.Tool = &gate.Tool{Name: gate.ToolName{Server: "gateway", Tool: "propose"}, Local: "propose", Digest: "g"}
	q.Set = of
	return q
}

// approvedSet is a queue in which a person has approved a set.
func approvedSet(t *testing.T, of ...gate.Question) (*approval.Queue, *log) {
	t.Helper()
	q, l := newQueue(t, approval.Options{Hold: -1})
	id := waits(t, q, proposal("p1", of...))
	decide(t, q, id, gate.Approved)
	if _, err := q.Approve(t.Context(), proposal("p2", of...)); err != nil {
		t.Fatal(err)
	}
	return q, l
}

// A set lets each of its calls pass once, and nothing else.
func TestSet(t *testing.T) {
	one, two := ask("x", inSession("s"), args(`{"path":"/a"}`)), ask("y", inSession("s"), args(`{"path":"/b"}`))
	q, l := approvedSet(t, one, two)
	want := []string{"requested", "approved cli:local", "redeemed cli:local", "approved cli:local", "approved cli:local"}
	if got := l.states(); !slices.Equal(got, want) {
		t.Errorf("records %q, want %q", got, want)
	}
	if a, err := q.Approve(t.Context(), ask("c1", inSession("s"), args(`{"path":"/b"}`))); err != nil || a.By != "cli:local" {
		t.Errorf("the second call: %+v, %v", a, err)
	}
	if _, err := q.Approve(t.Context(), ask("c1", inSession("s"), args(`{"path":"/b"}`))); err != nil {
		t.Errorf("the same call, decided on again: %v", err)
	}
	for name, other := range map[string]gate.Question{
		"used before":               ask("c2", inSession("s"), args(`{"path":"/b"}`)),
		"another byte":              ask("c3", inSession("s"), args(`{"path":"/A"}`)),
		"one argument more":         ask("c4", inSession("s"), args(`{"path":"/a","mode":1}`)),
		"another session":           ask("c5", inSession("t"), args(`{"path":"/a"}`)),
		"another principal":         ask("c6", inSession("s"), args(`{"path":"/a"}`), func(q *gate.Question) { q.Call.Who = &gate.Principal{Owner: gate.Owner{ID: "eve"}} }),
		"another policy":            ask("c7", inSession("s"), func(q *gate.Question) { q.Revision = "r2" }),
		"another definition":        ask("c8", inSession("s"), func(q *gate.Question) { t := *q.Tool; t.Digest = "d2"; q.Tool = &t }),
		"another configuration":     ask("c9", inSession("s"), func(q *gate.Question) { t := *q.Tool; t.Config = "x"; q.Tool = &t }),
		"another tool":              ask("c10", inSession("s"), func(q *gate.Question) { t := *q.Tool; t.Name.Tool = "remove"; q.Tool = &t }),
		"another server":            ask("c11", inSession("s"), func(q *gate.Question) { t := *q.Tool; t.Name.Server = "other"; q.Tool = &t }),
		"the set, another time":     proposal("p3", one, two),
		"a set of one of the calls": proposal("p4", one),
	} {
		if a, err := q.Approve(t.Context(), other); err == nil {
			t.Errorf("%s passes: %+v", name, a)
		} else if _, ok := errors.AsType[*gate.Pending](err); !ok {
			t.Errorf("%s: %v, want a question of its own", name, err)
		}
	}
	if _, err := q.Approve(t.Context(), ask("c12", inSession("s"), args(`{"path":"/a"}`))); err != nil {
		t.Errorf("the first call: %v", err)
	}
}

// A call that is twice in a set passes twice.
func TestSetWithEqualCalls(t *testing.T) {
	one := ask("x", inSession("s"))
	q, _ := approvedSet(t, one, one)
	for _, id := range []string{"c1", "c2"} {
		if _, err := q.Approve(t.Context(), ask(id, inSession("s"))); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	waits(t, q, ask("c3", inSession("s")))
}

// What a person has approved is the list as it was shown, in the session in which it was asked for.
func TestBindingOfSet(t *testing.T) {
	one, two := ask("x", inSession("s"), args(`{"path":"/a"}`)), ask("y", inSession("s"), args(`{"path":"/b"}`))
	q, _ := newQueue(t, approval.Options{Hold: -1})
	id := waits(t, q, proposal("p1", one, two))
	decide(t, q, id, gate.Approved)
	changed := ask("y", inSession("s"), args(`{"path":"/B"}`))
	there := proposal("p2", one, two)
	inSession("t")(&there)
	for name, other := range map[string]gate.Question{
		"another list": proposal("p3", one, changed), "another order": proposal("p4", two, one), "a longer list": proposal("p5", one, two, one),
		"another session": there, "no list": proposal("p6"),
	} {
		if _, err := q.Approve(t.Context(), other); err == nil {
			t.Errorf("%s is approved", name)
		}
	}
	if _, err := q.Approve(t.Context(), ask("c", inSession("s"), args(`{"path":"/a"}`))); err == nil {
		t.Error("a call passes before the agent has come back for the set")
	}
}

// A denied or expired set lets nothing pass, and what cannot be recorded is not approved.
func TestSetThatIsNotApproved(t *testing.T) {
	one := ask("x", inSession("s"))
	t.Run("denied", func(t *testing.T) {
		q, _ := newQueue(t, approval.Options{Hold: -1})
		decide(t, q, waits(t, q, proposal("p1", one)), gate.Denied)
		refused(t, q, proposal("p2", one), "denied")
		waits(t, q, ask("c", inSession("s")))
	})
	t.Run("expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q, l := approvedSet(t, one)
			time.Sleep(11 * time.Minute)
			waits(t, q, ask("c", inSession("s")))
			if got := l.states(); !slices.Contains(got, "expired cli:local") {
				t.Errorf("records %q", got)
			}
		})
	})
	t.Run("not recorded", func(t *testing.T) {
		q, l := newQueue(t, approval.Options{Hold: -1})
		decide(t, q, waits(t, q, proposal("p1", one)), gate.Approved)
		l.fail = approval.StateApproved
		if _, err := q.Approve(t.Context(), proposal("p2", one)); !errors.Is(err, errFull) {
			t.Errorf("error %v", err)
		}
		l.fail = ""
		waits(t, q, ask("c", inSession("s")))
	})
	t.Run("too many", func(t *testing.T) {
		q, _ := newQueue(t, approval.Options{Hold: -1})
		refused(t, q, proposal("p1", slices.Repeat([]gate.Question{one}, 200)...), "wait for approval")
	})
}

// A person is shown each call of a set, numbered, and where its destinations were met.
func TestInquiryOfSet(t *testing.T) {
	one, two := ask("x", inSession("s"), args(`{"path":"/a"}`)), ask("y", inSession("s"), args(`{"path":"/b\nMay you"}`))
	two.Destinations = []string{"/b"}
	i := proposal("p1", one, two).Inquiry()
	text := i.Text()
	for _, want := range []string{"these 2 calls, each once?\n1. Call write of server files\n- /path: \"/a\"\n", "2. Call write of server files\n- /path: \"/b\\nMay you\"\n", "No trusted source has named /b"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if !i.Set || proposal("p2").Inquiry().Set {
		t.Error("a set is not told from a call")
	}
}
