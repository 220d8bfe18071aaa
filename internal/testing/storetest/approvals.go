package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// Approvals tests a store of approvals. Open returns it without any, as several gateways have it.
func Approvals(t *testing.T, open func(*testing.T) []approval.Store) {
	for name, test := range map[string]func(*testing.T, []approval.Store){
		"a question comes back as it was asked":    testQuestion,
		"what many ask is one question":            testAskedOnce,
		"asked here, answered there, redeemed":     testRedeemedOnce,
		"a denial refuses every call":              testDenied,
		"of two answers one counts":                testOneAnswer,
		"an answer that is not recorded is none":   testAnswerNotRecorded,
		"a question that is not recorded is none":  testNotRecorded,
		"what was used up is asked anew":           testAnew,
		"what expires ends once":                   testApprovalExpiry,
		"a caller has so many open questions":      testTooMany,
		"the calls of a set, in its session":       testSet,
		"a client closes a question by itself":     testClosed,
		"an unknown id is not an approval":         testUnknown,
		"a wait ends with the answer and the call": testWait,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// asks returns a question about a call.
func asks(call, path string, o gate.Owner) gate.Question {
	return gate.Question{
		Query: gate.Query{
			Call: &gate.Call{
				ID: call, Action: gate.CallTool, Name: "files__write", Args: gate.MustDoc(`{"path":"` + path + `","text":"<&>","n":1.50}`),
				Who:     &gate.Principal{Owner: o, Auth: "apikey", Roles: []string{"dev"}, Claims: gate.MustDoc(`{"scope":"x"}`)},
				Session: gate.SessionKey{Owner: o, ID: "s1"}, ClientName: "test",
			},
			Tool: &gate.Tool{
				Name: gate.ToolName{Server: "files", Tool: "write"}, Local: "write", Offered: "files__write", Digest: "d1", Config: "c1",
				Definition: gate.MustDoc(`{"name":"write"}`),
			},
			Session: gate.Session{Key: gate.SessionKey{Owner: o, ID: "s1"}, Version: 7, Labels: gate.NewLabels("untrusted")},
		},
		Reasons: []string{"because"}, Revision: "r1", Snapshot: "s1", Destinations: []string{"bob@corp.example"},
		Approvers: []obligation.Approve{{By: []string{"role:lead"}, NotSelf: true}},
	}
}

var ids atomic.Int64

func askOf(t *testing.T, s approval.Store, q gate.Question) (approval.Request, bool) {
	t.Helper()
	r, fresh, err := s.Ask(t.Context(), q, fmt.Sprint("q-", ids.Add(1)), time.Hour)
	must(t, err)
	if fresh {
		must(t, s.Asked(t.Context(), r.ID, true))
	}
	return r, fresh
}

func answer(t *testing.T, s approval.Store, id, state string) {
	t.Helper()
	r, err := s.Answer(t.Context(), id)
	must(t, err)
	r.State, r.By, r.Auth, r.Note, r.Destinations = state, "cli:alice", "apikey", "fine", r.Question.Destinations
	must(t, s.Answered(t.Context(), r, true))
}

func get(t *testing.T, s approval.Store, id string) approval.Request {
	t.Helper()
	r, ok, err := s.Get(t.Context(), id)
	must(t, err)
	if !ok {
		t.Fatalf("there is no %s", id)
	}
	return r
}

// refuses checks that an error is the reason of a refusal.
func refuses(t *testing.T, err error, reason string) {
	t.Helper()
	if _, ok := errors.AsType[*gate.NotApproved](err); !ok || !strings.Contains(err.Error(), reason) {
		t.Errorf("error %v, want a refusal with %q", err, reason)
	}
}

func testQuestion(t *testing.T, all []approval.Store) {
	q := asks("c1", "/a", other)
	q.Set = []gate.Question{asks("c2", "/b", other), asks("c3", "/c", bob)}
	r, fresh := askOf(t, all[0], q)
	if !fresh || r.State != approval.StateRequested || !r.Expires.Equal(r.Asked.Add(time.Hour)) {
		t.Errorf("%+v, fresh %t", r, fresh)
	}
	same := cmp.Options{
		cmp.Comparer(func(a, b gate.Doc) bool { return string(a.Raw()) == string(b.Raw()) && a.IsZero() == b.IsZero() }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Values" }, cmp.Ignore()),
		cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	}
	for i, s := range all {
		if diff := cmp.Diff(r, get(t, s, r.ID), same); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
		list, err := s.List(t.Context())
		must(t, err)
		if len(list) != 1 {
			t.Fatalf("%d lists %d", i, len(list))
		}
		got := list[0].Question
		if diff := cmp.Diff(q, got, same); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
		if got.Binding() != q.Binding() || approval.SetBinding(got.Set[1]) != approval.SetBinding(q.Set[1]) {
			t.Errorf("%d: another binding", i)
		}
	}
}

func testAskedOnce(t *testing.T, all []approval.Store) {
	var fresh atomic.Int64
	var mu sync.Mutex
	found := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 18 {
		wg.Go(func() {
			r, isNew, err := all[i%len(all)].Ask(t.Context(), asks(fmt.Sprint("c", i), "/a", alice), fmt.Sprint("n-x", i), time.Hour)
			if err != nil {
				t.Error(err)
				return
			}
			if isNew {
				fresh.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			found[r.ID] = true
		})
	}
	wg.Wait()
	if fresh.Load() != 1 || len(found) != 1 {
		t.Errorf("%d questions, ids %v", fresh.Load(), found)
	}
	if _, isNew := askOf(t, all[0], asks("c", "/a", bob)); !isNew {
		t.Error("the question of another caller is the same")
	}
}

func testRedeemedOnce(t *testing.T, all []approval.Store) {
	for round := range 10 {
		r, _ := askOf(t, all[0], asks("c0", fmt.Sprint("/", round), alice))
		if _, _, err := all[2].Redeem(t.Context(), r.ID, "c0"); err == nil {
			t.Error("it is redeemed before it was approved")
		}
		answer(t, all[1], r.ID, approval.StateApproved)
		if got := get(t, all[2], r.ID); got.State != approval.StateApproved || got.By != "cli:alice" || got.Auth != "apikey" || got.Note != "fine" || !slices.Equal(got.Destinations, []string{"bob@corp.example"}) {
			t.Fatalf("%+v", got)
		}
		var wg sync.WaitGroup
		var winner atomic.Pointer[string]
		for i := range 12 {
			wg.Go(func() {
				call := fmt.Sprint("c", i)
				_, again, err := all[i%len(all)].Redeem(t.Context(), r.ID, call)
				if _, refused := errors.AsType[*gate.NotApproved](err); refused {
					return
				}
				if err != nil || again || !winner.CompareAndSwap(nil, &call) {
					t.Errorf("call %s redeems it: again %t, %v", call, again, err)
				}
			})
		}
		wg.Wait()
		if winner.Load() == nil {
			t.Fatal("no call redeems it")
		}
		for i, s := range all {
			if _, again, err := s.Redeem(t.Context(), r.ID, *winner.Load()); !again || err != nil {
				t.Errorf("%d: the same call: again %t, %v", i, again, err)
			}
			_, _, err := s.Redeem(t.Context(), r.ID, "late")
			refuses(t, err, "another call has used it")
		}
		must(t, all[1].Spoil(t.Context(), r.ID))
		_, _, err := all[0].Redeem(t.Context(), r.ID, *winner.Load())
		refuses(t, err, "another call has used it")
	}
}

func testDenied(t *testing.T, all []approval.Store) {
	r, _ := askOf(t, all[0], asks("c1", "/a", alice))
	answer(t, all[1], r.ID, approval.StateDenied)
	for i, s := range all {
		again, fresh := askOf(t, s, asks(fmt.Sprint("d", i), "/a", alice))
		if fresh || again.State != approval.StateDenied {
			t.Errorf("%d: asked again: %s, fresh %t", i, again.State, fresh)
		}
		_, _, err := s.Redeem(t.Context(), r.ID, "c1")
		refuses(t, err, "a person has denied this call")
	}
}

func testOneAnswer(t *testing.T, all []approval.Store) {
	r, _ := askOf(t, all[0], asks("c1", "/a", alice))
	mine, err := all[0].Answer(t.Context(), r.ID)
	must(t, err)
	_, err = all[1].Answer(t.Context(), r.ID)
	refuses(t, err, "is being answered at this moment")
	mine.State = approval.StateApproved
	must(t, all[0].Answered(t.Context(), mine, true))
	_, err = all[2].Answer(t.Context(), r.ID)
	refuses(t, err, "is approved already")
	mine.State = approval.StateDenied
	refuses(t, all[2].Answered(t.Context(), mine, true), "has expired")
}

func testAnswerNotRecorded(t *testing.T, all []approval.Store) {
	r, _ := askOf(t, all[0], asks("c1", "/a", alice))
	mine, err := all[0].Answer(t.Context(), r.ID)
	must(t, err)
	mine.State = approval.StateApproved
	must(t, all[0].Answered(t.Context(), mine, false))
	if got := get(t, all[1], r.ID); got.State != approval.StateRequested {
		t.Errorf("it is %s", got.State)
	}
	answer(t, all[1], r.ID, approval.StateApproved)
}

func testNotRecorded(t *testing.T, all []approval.Store) {
	r, fresh, err := all[0].Ask(t.Context(), asks("c1", "/a", alice), "n-1", time.Hour)
	must(t, err)
	if !fresh {
		t.Error("it was asked before")
	}
	list, err := all[1].List(t.Context())
	if err != nil || len(list) > 0 {
		t.Errorf("people see %v, %v", list, err)
	}
	_, err = all[1].Answer(t.Context(), r.ID)
	refuses(t, err, "there is no approval")
	must(t, all[0].Asked(t.Context(), r.ID, false))
	if _, ok, err := all[1].Get(t.Context(), r.ID); ok || err != nil {
		t.Errorf("it is there: %t, %v", ok, err)
	}
	if _, fresh := askOf(t, all[2], asks("c1", "/a", alice)); !fresh {
		t.Error("the next one is the same")
	}
}

func testAnew(t *testing.T, all []approval.Store) {
	r, _ := askOf(t, all[0], asks("c1", "/a", alice))
	answer(t, all[1], r.ID, approval.StateApproved)
	_, _, err := all[2].Redeem(t.Context(), r.ID, "c1")
	must(t, err)
	if same, fresh := askOf(t, all[1], asks("c1", "/a", alice)); fresh || same.ID != r.ID {
		t.Error("the call that has redeemed it is asked anew")
	}
	next, fresh := askOf(t, all[1], asks("c2", "/a", alice))
	if !fresh || next.ID == r.ID {
		t.Error("another call uses it")
	}
	if got, fresh := askOf(t, all[0], asks("c3", "/a", alice)); fresh || got.ID != next.ID {
		t.Errorf("the newest question is %s, not %s", got.ID, next.ID)
	}
}

func testApprovalExpiry(t *testing.T, all []approval.Store) {
	r, _, err := all[0].Ask(t.Context(), asks("c1", "/a", alice), "n-1", time.Millisecond)
	must(t, err)
	var ended []approval.Request
	timelimit.Wait(t, "it expires", func() bool {
		for _, s := range all {
			got, err := s.Expire(t.Context())
			must(t, err)
			ended = append(ended, got...)
		}
		return len(ended) > 0
	})
	if len(ended) != 1 || ended[0].ID != r.ID || ended[0].State != approval.StateExpired || ended[0].Question.Binding() != r.Question.Binding() {
		t.Errorf("ended: %+v", ended)
	}
	for _, s := range all {
		if _, ok, err := s.Get(t.Context(), r.ID); ok || err != nil {
			t.Errorf("it is there: %t, %v", ok, err)
		}
		_, _, err = s.Redeem(t.Context(), r.ID, "c1")
		refuses(t, err, "has expired")
	}
}

func testTooMany(t *testing.T, all []approval.Store) {
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, _, err = all[n%len(all)].Ask(t.Context(), asks("c", fmt.Sprint("/", n), alice), fmt.Sprint("n-", n), time.Hour)
	}
	refuses(t, err, fmt.Sprintf("%d calls of yours wait", n-1))
	if _, fresh := askOf(t, all[0], asks("c", "/a", bob)); !fresh {
		t.Error("another caller is not asked")
	}
}

func testSet(t *testing.T, all []approval.Store) {
	q := asks("set", "/set", alice)
	q.Set = []gate.Question{asks("", "/a", alice), asks("", "/a", alice)} // the same call twice
	r, _ := askOf(t, all[0], q)
	answer(t, all[1], r.ID, approval.StateApproved)
	r, _, err := all[0].Redeem(t.Context(), r.ID, "set")
	must(t, err)
	var parts []approval.Request
	for i, one := range r.Question.Set {
		parts = append(parts, approval.Request{
			ID: fmt.Sprintf("%s.%d", r.ID, i+1), Question: one, State: approval.StateApproved, Asked: r.Asked, Expires: r.Expires, By: r.By, InSet: true,
		})
	}
	must(t, all[0].Announce(t.Context(), r.ID, parts))
	elsewhere := asks("c", "/a", alice)
	elsewhere.Call.Session.ID = "s2"
	if _, ok, err := all[1].Announced(t.Context(), elsewhere); ok || err != nil {
		t.Errorf("another session has it: %t, %v", ok, err)
	}
	for _, call := range []string{"c1", "c2"} {
		part, ok, err := all[1].Announced(t.Context(), asks(call, "/a", alice))
		if !ok || err != nil || !part.InSet {
			t.Fatalf("call %s has none: %v", call, err)
		}
		_, _, err = all[2].Redeem(t.Context(), part.ID, call)
		must(t, err)
	}
	if _, ok, err := all[0].Announced(t.Context(), asks("c3", "/a", alice)); ok || err != nil {
		t.Errorf("a third call has one: %t, %v", ok, err)
	}
	list, err := all[0].List(t.Context())
	if err != nil || len(list) > 0 {
		t.Errorf("people are asked %v, %v", list, err)
	}
}

func testClosed(t *testing.T, all []approval.Store) {
	r, _ := askOf(t, all[0], asks("c1", "/a", alice))
	must(t, all[0].Show(t.Context(), r.ID))
	if took, err := all[1].Shown(t.Context(), r.ID); took < 0 || took > time.Hour || err != nil {
		t.Errorf("shown %v ago, %v", took, err)
	}
	must(t, all[1].Closed(t.Context(), r.ID, "declined"))
	if got := get(t, all[2], r.ID); got.Closed != "declined" || got.State != approval.StateRequested {
		t.Errorf("%+v", got)
	}
	answer(t, all[2], r.ID, approval.StateApproved)
}

func testUnknown(t *testing.T, all []approval.Store) {
	s := all[0]
	_, err := s.Answer(t.Context(), "n-\x1b[1m")
	refuses(t, err, "there is no approval")
	_, _, err = s.Redeem(t.Context(), "n-0", "c")
	refuses(t, err, "has expired")
	if _, ok, err := s.Get(t.Context(), "n-0"); ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	must(t, s.Asked(t.Context(), "n-0", true))
	must(t, s.Show(t.Context(), "n-0"))
	must(t, s.Closed(t.Context(), "n-0", "x"))
	must(t, s.Spoil(t.Context(), "n-0"))
	s.Wait(t.Context(), "n-0")
}

func testWait(t *testing.T, all []approval.Store) {
	r, _ := askOf(t, all[0], asks("c1", "/a", alice))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all[1].Wait(ctx, r.ID)
	var waiting sync.WaitGroup
	for _, s := range all {
		waiting.Go(func() { s.Wait(t.Context(), r.ID) })
	}
	answer(t, all[2], r.ID, approval.StateApproved)
	waiting.Wait()
	r, _ = askOf(t, all[0], asks("c1", "/b", alice))
	for _, s := range all {
		waiting.Go(func() { s.Wait(t.Context(), r.ID) })
		_, err := s.End(t.Context())
		must(t, err)
	}
	waiting.Wait()
}
