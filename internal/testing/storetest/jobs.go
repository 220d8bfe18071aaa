package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
)

var (
	alice = gate.Owner{ID: "alice"}
	bob   = gate.Owner{ID: "bob"}
	other = gate.Owner{Tenant: "other", ID: "alice"}
	began = time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)
	wide  = jobs.Bounds{Jobs: 1000, Bytes: 1 << 30, After: time.Hour}
)

// Jobs tests a store of jobs. Open returns a store without jobs, which the test closes.
func Jobs(t *testing.T, open func(*testing.T) jobs.Store) {
	for name, test := range map[string]func(*testing.T, jobs.Store){
		"what was kept is found again":          testKept,
		"a job is its owner's alone":            testOwners,
		"a job ends once":                       testEndsOnce,
		"a job can be removed":                  testRemoved,
		"lists are in pages, the newest first":  testPages,
		"a restart fails its own node's jobs":   testAbandoned,
		"outcomes expire, and are forgotten":    testExpiry,
		"results are bounded, the oldest go":    testBytes,
		"jobs are bounded, expired ones go":     testCount,
		"who keeps most makes room for others":  testFair,
		"a result can be too large to be kept":  testTooLarge,
		"an id is kept once":                    testTwice,
		"labels and an absent result come back": testLabels,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func job(id string, who gate.Owner) jobs.Job {
	return jobs.Job{
		ID: id, Owner: who, Node: "n", Boot: "b", Tool: "files__read", Call: "call-" + id, State: jobs.Running,
		Started: began, Keep: time.Hour,
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, s jobs.Store, all ...jobs.Job) {
	t.Helper()
	for _, j := range all {
		must(t, s.AddJob(t.Context(), j))
	}
}

// done adds a job that ended with a result of n bytes, at a second after began.
func done(t *testing.T, s jobs.Store, id string, who gate.Owner, second, n int) jobs.Job {
	t.Helper()
	j := job(id, who)
	add(t, s, j)
	j.State, j.Code, j.Ended = jobs.Completed, codes.OK, began.Add(time.Duration(second)*time.Second)
	doc := sized(n)
	j.Size = int64(len(doc.Raw()))
	must(t, s.EndJob(t.Context(), j, doc))
	return j
}

// sized returns an object of n bytes.
func sized(n int) gate.Doc {
	return gate.MustDoc(`{"text":"` + strings.Repeat("x", n-len(`{"text":""}`)) + `"}`)
}

func found(t *testing.T, s jobs.Store, who gate.Owner, id string) jobs.Job {
	t.Helper()
	j, err := s.Job(t.Context(), who, id)
	must(t, err)
	return j
}

// same compares jobs; times are of any zone.
var same = cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })

func testKept(t *testing.T, s jobs.Store) {
	want := job("1", alice)
	add(t, s, want)
	if diff := cmp.Diff(want, found(t, s, alice, "1"), same); diff != "" {
		t.Error(diff)
	}
	want.State, want.Code, want.Reason, want.Ended = jobs.Failed, "timeout", "the call took too long", began.Add(time.Minute)
	want.Labels = gate.NewLabels("private", "untrusted")
	doc := gate.MustDoc(`{"n":12345678901234567890,"text":"\u0000 ä"}`)
	want.Size = int64(len(doc.Raw()))
	must(t, s.EndJob(t.Context(), want, doc))
	got, result, err := s.JobResult(t.Context(), alice, "1")
	must(t, err)
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Error(diff)
	}
	if result.String() != doc.String() {
		t.Errorf("the result is %s, want the same bytes as %s", result, doc)
	}
	counts, err := s.CountJobs(t.Context(), "n")
	must(t, err)
	if want := (jobs.Counts{Kept: 1, Bytes: want.Size}); counts != want {
		t.Errorf("counts = %+v, want %+v", counts, want)
	}
}

func testOwners(t *testing.T, s jobs.Store) {
	done(t, s, "1", alice, 1, 20)
	for _, who := range []gate.Owner{bob, other, {}} {
		_, err := s.Job(t.Context(), who, "1")
		unknown(t, err)
		_, _, err = s.JobResult(t.Context(), who, "1")
		unknown(t, err)
		_, err = s.Jobs(t.Context(), who, "1", 9)
		unknown(t, err)
		if all, err := s.Jobs(t.Context(), who, "", 9); err != nil || len(all) != 0 {
			t.Errorf("%+v lists %v, %v", who, all, err)
		}
	}
}

func unknown(t *testing.T, err error) {
	t.Helper()
	if h, ok := errors.AsType[*jobs.HandleError](err); !ok || h.Expired {
		t.Errorf("error %v, want that there is no such job", err)
	}
}

func testEndsOnce(t *testing.T, s jobs.Store) {
	first := done(t, s, "1", alice, 1, 20)
	again := first
	again.State, again.Reason = jobs.Cancelled, "late"
	must(t, s.EndJob(t.Context(), again, sized(30)))
	got, doc, err := s.JobResult(t.Context(), alice, "1")
	must(t, err)
	if got.State != jobs.Completed || len(doc.Raw()) != 20 {
		t.Errorf("a second end has changed the job: %+v, %s", got, doc)
	}
	must(t, s.EndJob(t.Context(), job("none", alice), gate.Doc{}))
	_, err = s.Job(t.Context(), alice, "none")
	unknown(t, err)
}

func testRemoved(t *testing.T, s jobs.Store) {
	done(t, s, "1", alice, 1, 20)
	must(t, s.RemoveJob(t.Context(), "1"))
	_, _, err := s.JobResult(t.Context(), alice, "1")
	unknown(t, err)
	must(t, s.RemoveJob(t.Context(), "1"))
}

func testPages(t *testing.T, s jobs.Store) {
	for i := range 5 {
		add(t, s, job(fmt.Sprint("a", i), alice), job(fmt.Sprint("b", i), bob))
	}
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		page, err := s.Jobs(t.Context(), alice, after, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, j := range page {
			got = append(got, j.ID)
		}
	}
	if diff := cmp.Diff([]string{"a4", "a3", "a2", "a1", "a0"}, got); diff != "" {
		t.Error(diff)
	}
}

func testAbandoned(t *testing.T, s jobs.Store) {
	mine, elsewhere, now := job("mine", alice), job("elsewhere", alice), job("now", alice)
	elsewhere.Node, now.Boot = "m", "b2"
	add(t, s, mine, elsewhere, now)
	done(t, s, "done", alice, 1, 20)
	n, err := s.AbandonJobs(t.Context(), "n", "b2", began.Add(time.Minute), "it was restarted")
	must(t, err)
	if n != 1 {
		t.Errorf("%d jobs are failed, want 1", n)
	}
	for id, state := range map[string]jobs.State{"mine": jobs.Failed, "elsewhere": jobs.Running, "now": jobs.Running, "done": jobs.Completed} {
		if j := found(t, s, alice, id); j.State != state {
			t.Errorf("job %s is %s, want %s", id, j.State, state)
		}
	}
	j := found(t, s, alice, "mine")
	if j.Reason != "it was restarted" || j.Code != codes.Cancelled || !j.Expires().Equal(began.Add(time.Minute+time.Hour)) {
		t.Errorf("the job is %+v", j)
	}
	must(t, s.TrimJobs(t.Context(), "n", began.Add(time.Minute+time.Hour), wide))
	if !found(t, s, alice, "mine").Expired {
		t.Error("what a restart has failed does not expire")
	}
}

func testExpiry(t *testing.T, s jobs.Store) {
	ended := done(t, s, "1", alice, 1, 20)
	add(t, s, job("runs", alice))
	trim := func(at time.Time) { must(t, s.TrimJobs(t.Context(), "n", at, wide)) }
	trim(ended.Expires().Add(-time.Microsecond))
	if j := found(t, s, alice, "1"); j.Expired || j.Size != 20 {
		t.Errorf("before its time the job is %+v", j)
	}
	trim(ended.Expires())
	j, doc, err := s.JobResult(t.Context(), alice, "1")
	must(t, err)
	if !j.Expired || j.Size != 0 || !doc.IsZero() || j.State != jobs.Completed {
		t.Errorf("after its time the job is %+v with %s", j, doc)
	}
	trim(ended.Expires().Add(wide.After))
	_, err = s.Job(t.Context(), alice, "1")
	unknown(t, err)
	if j := found(t, s, alice, "runs"); j.Expired {
		t.Error("a running job has expired")
	}
}

func testBytes(t *testing.T, s jobs.Store) {
	for i := range 4 {
		done(t, s, fmt.Sprint(i), alice, i, 100)
	}
	b := wide
	b.Bytes = 250
	must(t, s.TrimJobs(t.Context(), "n", began, b))
	for i, expired := range []bool{true, true, false, false} {
		if j := found(t, s, alice, fmt.Sprint(i)); j.Expired != expired {
			t.Errorf("job %d: expired is %v, want %v", i, j.Expired, expired)
		}
	}
}

func testCount(t *testing.T, s jobs.Store) {
	for i := range 4 {
		done(t, s, fmt.Sprint(i), alice, i, 100)
	}
	add(t, s, job("runs", alice))
	b := wide
	b.Bytes, b.Jobs = 300, 2 // the first result goes, and then the first two jobs
	must(t, s.TrimJobs(t.Context(), "n", began, b))
	var left []string
	all, err := s.Jobs(t.Context(), alice, "", 9)
	must(t, err)
	for _, j := range all {
		left = append(left, j.ID)
	}
	if diff := cmp.Diff([]string{"runs", "3", "2"}, left); diff != "" {
		t.Error(diff)
	}
	b.Jobs, b.Bytes = 0, 0
	must(t, s.TrimJobs(t.Context(), "n", began, b))
	if found(t, s, alice, "runs").State != jobs.Running {
		t.Error("a running job made room")
	}
}

func testFair(t *testing.T, s jobs.Store) {
	done(t, s, "bob", bob, 0, 100) // the oldest of all
	for i := range 5 {
		done(t, s, fmt.Sprint(i), alice, i+1, 100)
	}
	b := wide
	b.Bytes = 300
	must(t, s.TrimJobs(t.Context(), "n", began, b))
	if found(t, s, bob, "bob").Expired {
		t.Error("one owner's results have pushed out another's")
	}
	b.Jobs = 2
	must(t, s.TrimJobs(t.Context(), "n", began, b))
	found(t, s, bob, "bob")
}

func testTooLarge(t *testing.T, s jobs.Store) {
	j := job("1", alice)
	add(t, s, j)
	j.State, j.Ended = jobs.Completed, began
	if err := s.EndJob(t.Context(), j, sized(17<<20)); !errors.Is(err, jobs.ErrTooLarge) {
		t.Fatalf("error %v, want that it is too large", err)
	}
	if found(t, s, alice, "1").State != jobs.Running {
		t.Error("the job has ended all the same")
	}
}

func testTwice(t *testing.T, s jobs.Store) {
	add(t, s, job("1", alice))
	if err := s.AddJob(t.Context(), job("1", bob)); err == nil {
		t.Error("a second job of one id is kept")
	}
	found(t, s, alice, "1")
}

func testLabels(t *testing.T, s jobs.Store) {
	j := job("1", alice)
	add(t, s, j)
	j.State, j.Ended, j.Labels = jobs.Cancelled, began, gate.NewLabels("untrusted")
	must(t, s.EndJob(t.Context(), j, gate.Doc{}))
	got, doc, err := s.JobResult(t.Context(), alice, "1")
	must(t, err)
	if !doc.IsZero() || !got.Labels.Cover(j.Labels) || len(got.Labels) != 1 {
		t.Errorf("labels %v and result %s", got.Labels, doc)
	}
}
