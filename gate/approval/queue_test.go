package approval_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/fair"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A log keeps what was recorded, as "state by". It fails at a state.
type log struct {
	during func(state string) // while a record is written; may be nil

	mu      sync.Mutex
	records []gate.Record
	fail    string
}

var errFull = errors.New("the disk is full")

func (l *log) Record(_ context.Context, r *gate.Record) error {
	if l.during != nil {
		l.during(r.Approval.State)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Approval.State == l.fail {
		return errFull
	}
	l.records = append(l.records, *r)
	return nil
}

func (l *log) states() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, r := range l.records {
		all = append(all, strings.TrimSpace(r.Approval.State+" "+r.Approval.By))
	}
	return all
}

func newQueue(t *testing.T, o approval.Options) (*approval.Queue, *log) {
	t.Helper()
	l := new(log)
	o.Node, o.Recorder = "n1", l
	q, err := approval.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return q, l
}

// ask is a question about a call; change makes another one of it.
func ask(id string, change ...func(*gate.Question)) gate.Question {
	q := gate.Question{
		Query: gate.Query{
			Call: &gate.Call{ID: id, Action: gate.CallTool, Name: "files__write", Args: gate.MustDoc(`{"path":"/a"}`), Who: gate.Local(), Client: byAnswer},
			Tool: &gate.Tool{Name: gate.ToolName{Server: "files", Tool: "write"}, Local: "write", Digest: "d1"},
		},
		Reasons: []string{"because"}, Revision: "r1", Snapshot: "s1",
	}
	for _, f := range change {
		f(&q)
	}
	return q
}

// byAnswer is a client that can be asked by the answer to its call.
var byAnswer = &gatetest.Client{Can: gate.Reach{ByAnswer: true}}

func held(q *gate.Question) { q.Call.Client = nil }

// waits asks a question that no one answers, and returns its id.
func waits(t *testing.T, q *approval.Queue, asked gate.Question) string {
	t.Helper()
	_, err := q.Approve(t.Context(), asked)
	p, ok := errors.AsType[*gate.Pending](err)
	if !ok {
		t.Fatalf("error %v, want one that is pending", err)
	}
	return p.ID
}

func decide(t *testing.T, q *approval.Queue, id string, v gate.Verdict) {
	t.Helper()
	if _, err := q.Decide(t.Context(), id, v, "cli:local", ""); err != nil {
		t.Fatal(err)
	}
}

// refused fails unless the question is refused for good, for a reason with these
// words.
func refused(t *testing.T, q *approval.Queue, asked gate.Question, words string) {
	t.Helper()
	a, err := q.Approve(t.Context(), asked)
	if n, ok := errors.AsType[*gate.NotApproved](err); !ok || !strings.Contains(n.Reason, words) {
		t.Errorf("approval %+v, error %v; want a refusal with %q", a, err, words)
	}
}

// A person approves the values next to a destination as the question has shown them: for the
// session of the question only, and no matter what the session has read when the call comes again.
func TestDestinationsAreThoseThatWereShown(t *testing.T) {
	first := func(q *gate.Question) {
		q.Destinations, q.Beside, q.BesideOf = []string{"lily"}, []string{"bob"}, provenance.List{Place: "/to/*", Tool: "mail__read"}
	}
	later := func(q *gate.Question) { q.Destinations, q.Beside = []string{"lily", "eve"}, []string{"mallory"} }
	elsewhere := func(q *gate.Question) { q.Call.Session.ID = "another" }
	for name, tt := range map[string]struct {
		answer gate.Answer
		again  func(*gate.Question)
		want   []string
	}{
		"those beside it":    {gate.Answer{Verdict: gate.Approved, Destinations: true, Beside: true}, later, []string{"lily", "bob"}},
		"the destination":    {gate.Answer{Verdict: gate.Approved, Destinations: true}, later, []string{"lily"}},
		"the call":           {gate.Answer{Verdict: gate.Approved}, later, nil},
		"in another session": {gate.Answer{Verdict: gate.Approved, Destinations: true, Beside: true}, elsewhere, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := newQueue(t, approval.Options{})
			id := waits(t, q, ask("c1", first))
			_, err := q.Approve(t.Context(), ask("c2", later))
			p, ok := errors.AsType[*gate.Pending](err)
			if !ok || p.ID != id || !strings.Contains(p.Inquiry.Text(), "bob") || strings.Contains(p.Inquiry.Text(), "mallory") || !slices.Equal(p.Beside, []string{"bob"}) || !slices.Equal(p.Destinations, []string{"lily"}) {
				t.Fatalf("what is asked later is %+v", p)
			}
			if _, err := q.DecideAs(t.Context(), gate.Local(), id, tt.answer, "cli:local", ""); err != nil {
				t.Fatal(err)
			}
			if a, err := q.Approve(t.Context(), ask("c3", tt.again)); err != nil || !slices.Equal(a.Destinations, tt.want) {
				t.Errorf("approved %q: %v", a.Destinations, err)
			}
		})
	}
	q, _ := newQueue(t, approval.Options{})
	id := waits(t, q, ask("c1", first, func(q *gate.Question) { q.Beside = nil }))
	if _, err := q.DecideAs(t.Context(), gate.Local(), id, gate.Answer{Verdict: gate.Approved, Destinations: true, Beside: true}, "cli:local", ""); err == nil {
		t.Error("an answer for what no question has shown")
	}
}

func TestApprovedOnce(t *testing.T) {
	q, l := newQueue(t, approval.Options{})
	id := waits(t, q, ask("c1"))
	if again := waits(t, q, ask("c2")); again != id {
		t.Errorf("the same question is %s and %s", id, again)
	}
	decide(t, q, id, gate.Approved)
	want := gate.Approval{ID: id, By: "cli:local", Auth: "local"}
	for range 2 { // a call may redeem again what it has redeemed
		if a, err := q.Approve(t.Context(), ask("c3")); err != nil || !cmp.Equal(a, want) {
			t.Errorf("approval %+v, error %v", a, err)
		}
	}
	if other := waits(t, q, ask("c4")); other == id {
		t.Error("one approval for two calls")
	}
	refused(t, q, ask("c4", answering(id, gate.Approved)), "another call has used it")
	if diff := cmp.Diff([]string{"requested", "approved cli:local", "redeemed cli:local", "requested"}, l.states()); diff != "" {
		t.Error(diff)
	}
	r := l.records[2]
	if r.Event != gate.EventApproval || r.Call.ID != "c3" || r.Approval.Binding != ask("").Binding() || r.Approval.Expires.IsZero() {
		t.Errorf("record %+v", r)
	}
}

func TestDenied(t *testing.T) {
	q, l := newQueue(t, approval.Options{})
	id := waits(t, q, ask("c1"))
	if _, err := q.Decide(t.Context(), id, gate.Denied, "cli:local", "not this"); err != nil {
		t.Fatal(err)
	}
	refused(t, q, ask("c1"), "a person has denied this call")
	refused(t, q, ask("c2"), "a person has denied this call")
	refused(t, q, ask("c2", answering(id, gate.Approved)), "a person has denied this call")
	if _, err := q.Decide(t.Context(), id, gate.Approved, "cli:local", ""); err == nil {
		t.Error("a denial was turned round")
	}
	if n := len(q.Pending(t.Context())); n != 0 {
		t.Errorf("%d are pending", n)
	}
	if r, ok, _ := q.Request(t.Context(), id); !ok || r.Note != "not this" || r.State != approval.StateDenied {
		t.Errorf("request %+v", r)
	}
	if diff := cmp.Diff([]string{"requested", "denied cli:local"}, l.states()); diff != "" {
		t.Error(diff)
	}
}

// An approval is for one binding: a call that differs in any part of it gets
// nothing by it, neither by itself nor by an answer that names it.
func TestBoundTo(t *testing.T) {
	for name, change := range map[string]func(*gate.Question){
		"principal":     func(q *gate.Question) { q.Call.Who = &gate.Principal{Owner: gate.Owner{ID: "bob"}} },
		"tenant":        func(q *gate.Question) { q.Call.Who = &gate.Principal{Owner: gate.Owner{Tenant: "t", ID: "local"}} },
		"server":        func(q *gate.Question) { q.Tool.Name.Server = "other" },
		"tool":          func(q *gate.Question) { q.Tool.Name.Tool = "other" },
		"definition":    func(q *gate.Question) { q.Tool.Digest = "d2" },
		"arguments":     func(q *gate.Question) { q.Call.Args = gate.MustDoc(`{"path":"/b"}`) },
		"policy":        func(q *gate.Question) { q.Revision = "r2" },
		"configuration": func(q *gate.Question) { t := *q.Tool; t.Config = "c2"; q.Tool = &t },
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := newQueue(t, approval.Options{})
			id := waits(t, q, ask("c1"))
			refused(t, q, ask("c2", change, answering(id, gate.Approved)), "the answer")
			if r, _, _ := q.Request(t.Context(), id); r.State != approval.StateRequested {
				t.Fatalf("a foreign answer has made it %s", r.State)
			}
			decide(t, q, id, gate.Approved)
			refused(t, q, ask("c3", change, answering(id, gate.Approved)), "the answer")
			if other := waits(t, q, ask("c4", change)); other == id {
				t.Error("two bindings, one approval")
			}
			if _, err := q.Approve(t.Context(), ask("c5")); err != nil {
				t.Errorf("the call itself: %v", err)
			}
		})
	}
}

// A question has expired if either clock says so, whichever way the other was set.
func TestExpires(t *testing.T) {
	const expire = 10 * time.Minute
	for name, tt := range map[string]struct {
		wall, elapsed time.Duration
		expired       bool
	}{
		"soon enough":                          {expire - 1, expire - 1, false},
		"too late":                             {expire, expire, true},
		"the wall clock was set forward":       {expire, 0, true},
		"the wall clock was set back":          {-time.Hour, expire, true},
		"the wall clock was set back, in time": {-time.Hour, expire - 1, false},
	} {
		for _, first := range []gate.Verdict{gate.Dismissed, gate.Approved, gate.Denied} {
			t.Run(name+", "+string(first), func(t *testing.T) {
				start := time.Unix(1e9, 0)
				wall, elapsed := start, time.Duration(0)
				l := new(log)
				q, err := approval.NewWithClock(approval.Options{Recorder: l, Expire: expire}, func() time.Time { return wall }, func() time.Duration { return elapsed })
				if err != nil {
					t.Fatal(err)
				}
				id := waits(t, q, ask("c1"))
				if first != gate.Dismissed {
					decide(t, q, id, first)
				}
				wall, elapsed = start.Add(tt.wall), tt.elapsed
				_, known, _ := q.Request(t.Context(), id)
				_, derr := q.Decide(t.Context(), id, gate.Approved, "cli:local", "")
				a, err := q.Approve(t.Context(), ask("c2"))
				passed := err == nil && a.ID == id
				if known == tt.expired || passed != (!tt.expired && first != gate.Denied) {
					t.Errorf("known %t, passed %t (error %v)", known, passed, err)
				}
				if (derr == nil) != (!tt.expired && first == gate.Dismissed) {
					t.Errorf("decided: %v", derr)
				}
				if tt.expired {
					refused(t, q, ask("c3", answering(id, gate.Approved)), "has expired")
				}
				if recorded := slices.Contains(l.states(), "expired") || slices.Contains(l.states(), "expired cli:local"); recorded != (tt.expired && first != gate.Denied) {
					t.Errorf("records %v", l.states())
				}
			})
		}
	}
}

// No record, no approval.
func TestNotRecorded(t *testing.T) {
	t.Run("a question", func(t *testing.T) {
		q, l := newQueue(t, approval.Options{})
		l.fail = approval.StateRequested
		if _, err := q.Approve(t.Context(), ask("c1")); !errors.Is(err, errFull) {
			t.Errorf("error %v", err)
		}
		if n := q.Kept(); n != 0 {
			t.Errorf("%d are kept", n)
		}
	})
	t.Run("an approval", func(t *testing.T) {
		q, l := newQueue(t, approval.Options{})
		id := waits(t, q, ask("c1"))
		l.fail = approval.StateApproved
		if _, err := q.Decide(t.Context(), id, gate.Approved, "cli:local", ""); !errors.Is(err, errFull) {
			t.Errorf("error %v", err)
		}
		waits(t, q, ask("c1"))
		l.fail = ""
		decide(t, q, id, gate.Approved)
		if _, err := q.Approve(t.Context(), ask("c1")); err != nil {
			t.Error(err)
		}
	})
	t.Run("its use", func(t *testing.T) {
		q, l := newQueue(t, approval.Options{})
		id := waits(t, q, ask("c1"))
		decide(t, q, id, gate.Approved)
		l.fail = approval.StateRedeemed
		if _, err := q.Approve(t.Context(), ask("c1")); !errors.Is(err, errFull) {
			t.Errorf("error %v", err)
		}
		l.fail = ""
		if again := waits(t, q, ask("c1")); again == id {
			t.Error("an approval whose use was not recorded is used again")
		}
	})
}

// While an answer is being recorded no one else can answer, and it does not count if the question
// ends meanwhile.
func TestWhileItIsRecorded(t *testing.T) {
	for name, end := range map[string]bool{"another answer": false, "the end": true} {
		t.Run(name, func(t *testing.T) {
			q, l := newQueue(t, approval.Options{})
			id := waits(t, q, ask("c1"))
			l.during = func(state string) {
				if state != approval.StateApproved {
					return
				}
				if end {
					q.Close(t.Context())
				} else if _, err := q.Decide(t.Context(), id, gate.Denied, "cli:other", ""); err == nil || !strings.Contains(err.Error(), "being answered") {
					t.Errorf("error %v", err)
				}
			}
			_, err := q.Decide(t.Context(), id, gate.Approved, "cli:local", "")
			if end != (err != nil) {
				t.Errorf("error %v", err)
			}
			if a, err := q.Approve(t.Context(), ask("c2")); end == (err == nil) || !end && a.By != "cli:local" {
				t.Errorf("approval %+v, error %v", a, err)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	unraced.Long(t)
	q, _ := newQueue(t, approval.Options{})
	of := func(who, i int) func(*gate.Question) {
		return func(q *gate.Question) {
			q.Call.Who = &gate.Principal{Owner: gate.Owner{ID: fmt.Sprint("p", who)}}
			q.Call.Session.Owner = q.Call.Who.Owner
			q.Call.Args = gate.MustDoc(fmt.Sprintf(`{"i":%d}`, i))
		}
	}
	for who := range approval.MaxOpen / approval.MaxOpenOfOne {
		for i := range approval.MaxOpenOfOne {
			waits(t, q, ask("c", of(who, i)))
		}
	}
	refused(t, q, ask("c", of(0, 1000)), "100 calls of yours wait for approval already")
	decide(t, q, q.Pending(t.Context())[0].ID, gate.Denied)
	waits(t, q, ask("c", of(0, 1000)))
	for i := range fair.Extras {
		waits(t, q, ask("c", of(100+i, 0))) // which have none yet
	}
	refused(t, q, ask("c", of(100, 1)), "too many calls wait for approval already")
	refused(t, q, ask("c", of(99, 0)), "too many calls wait for approval already")
	waits(t, q, ask("c", of(0, 1000))) // one of those that wait
	if q.Waiting() != approval.MaxOpen+fair.Extras {
		t.Errorf("%d wait", q.Waiting())
	}

	q, _ = newQueue(t, approval.Options{})
	big := `{"a":"` + strings.Repeat("a", 4<<20) + `"`
	for i := range approval.MaxBytes/(4<<20) - 1 {
		waits(t, q, ask("c", func(q *gate.Question) { q.Call.Args = gate.MustDoc(fmt.Sprintf(`%s,"i":%d}`, big, i)) }))
	}
	refused(t, q, ask("c", func(q *gate.Question) { q.Call.Args = gate.MustDoc(big + `,"b":"` + strings.Repeat("b", 1<<20) + `"}`) }), "too many")
	waits(t, q, ask("c", of(1, 0), func(q *gate.Question) { q.Call.Args = gate.MustDoc(big + `}`) })) // another principal's first
}

// Closed questions are kept until they expire, but not without end.
func TestClosedAreBounded(t *testing.T) {
	unraced.Long(t)
	q, _ := newQueue(t, approval.Options{})
	for i := range approval.MaxClosed + 50 {
		one := ask(fmt.Sprint("c", i), func(q *gate.Question) { q.Call.Args = gate.MustDoc(fmt.Sprintf(`{"i":%d}`, i)) })
		decide(t, q, waits(t, q, one), gate.Approved)
		if _, err := q.Approve(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if n := q.Kept(); n != approval.MaxClosed {
		t.Errorf("%d are kept, want %d", n, approval.MaxClosed)
	}
}

func TestIDs(t *testing.T) {
	q, _ := newQueue(t, approval.Options{})
	id := waits(t, q, ask("c1"))
	if !regexp.MustCompile(`^n1-[a-z0-9]{16}$`).MatchString(id) {
		t.Errorf("id %q", id)
	}
	for _, node := range []string{"a b", "ä", strings.Repeat("a", 65)} {
		if _, err := approval.New(approval.Options{Node: node, Recorder: new(log)}); err == nil {
			t.Errorf("node %q is accepted", node)
		}
	}
	if _, err := approval.New(approval.Options{}); err == nil {
		t.Error("a queue without a recorder")
	}
}

func TestAlways(t *testing.T) {
	told := make(chan string, 9)
	q, _ := newQueue(t, approval.Options{Always: func(_ context.Context, r approval.Request) error {
		told <- r.Question.Tool.Name.String() + " " + r.Question.Call.Who.ID
		return errors.New("logged")
	}})
	for i, a := range []gate.Answer{{Verdict: gate.Denied, Always: true}, {Verdict: gate.Approved}, {Verdict: gate.Approved, Always: true}} {
		asker := askerFunc(func(context.Context, gate.Pending) (gate.Answer, error) { return a, nil })
		_, _ = q.Approve(t.Context(), ask("c", by(asker), func(q *gate.Question) { q.Call.Args = gate.MustDoc(fmt.Sprintf(`{"i":%d}`, i)) }))
	}
	q.Close(t.Context()) // waits for background work
	close(told)
	if got := slices.Collect(func(yield func(string) bool) {
		for s := range told {
			if !yield(s) {
				return
			}
		}
	}); !slices.Equal(got, []string{"files__write local"}) {
		t.Errorf("told of %q", got)
	}
}

// The end of the gateway lets go of the calls that it holds, and is recorded.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l := newQueue(t, approval.Options{})
		done := make(chan error)
		go func() {
			_, err := q.Approve(t.Context(), ask("c1", held))
			done <- err
		}()
		synctest.Wait()
		q.Close(t.Context())
		if err := <-done; err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("error %v", err)
		}
		refused(t, q, ask("c2"), "shutting down")
		q.Close(t.Context())
		if diff := cmp.Diff([]string{"requested", "expired"}, l.states()); diff != "" {
			t.Error(diff)
		}
	})
}

// An expired question is recorded in time, even if no one asks.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l := newQueue(t, approval.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { q.Run(ctx) })
		waits(t, q, ask("c1"))
		time.Sleep(10*time.Minute + 10*time.Second)
		if diff := cmp.Diff([]string{"requested", "expired"}, l.states()); diff != "" {
			t.Error(diff)
		}
		cancel()
		running.Wait()
	})
}

// TestApprovers: if approvers are named, no one else's answer counts, on any channel. The client of
// a call that may not approve is not even asked.
func TestApprovers(t *testing.T) {
	lead := &gate.Principal{Owner: gate.Owner{ID: "ann"}, Roles: []string{"lead"}}
	other := &gate.Principal{Owner: gate.Owner{ID: "bob"}, Roles: []string{"dev"}}
	foreign := &gate.Principal{Owner: gate.Owner{Tenant: "acme", ID: "ann"}, Roles: []string{"lead"}}
	for name, tt := range map[string]struct {
		options approval.Options
		rule    []obligation.Approve
		caller  *gate.Principal
		who     *gate.Principal
		counts  bool
		asks    bool // the client
	}{
		"anybody":                        {caller: other, who: other, counts: true, asks: true},
		"the role":                       {options: approval.Options{Approvers: obligation.Approve{By: []string{"role:lead"}}}, caller: other, who: lead, counts: true},
		"not the role":                   {options: approval.Options{Approvers: obligation.Approve{By: []string{"role:lead"}}}, caller: other, who: other},
		"not the operator":               {options: approval.Options{Approvers: obligation.Approve{By: []string{"role:lead"}}}, caller: other, who: gate.Local()},
		"the role of another tenant":     {options: approval.Options{Approvers: obligation.Approve{By: []string{"role:lead"}}}, caller: other, who: foreign},
		"by name":                        {options: approval.Options{Approvers: obligation.Approve{By: []string{"acme/ann"}}}, caller: other, who: foreign, counts: true},
		"not one's own":                  {options: approval.Options{Approvers: obligation.Approve{NotSelf: true}}, caller: lead, who: lead},
		"another's":                      {options: approval.Options{Approvers: obligation.Approve{NotSelf: true}}, caller: other, who: lead, counts: true},
		"one's own, where there is one":  {options: approval.Options{Approvers: obligation.Approve{NotSelf: true}, Alone: func() bool { return true }}, caller: gate.Local(), who: gate.Local(), counts: true, asks: true},
		"by rule":                        {rule: []obligation.Approve{{By: []string{"role:lead"}}}, caller: other, who: other},
		"by rule, and by configuration":  {options: approval.Options{Approvers: obligation.Approve{By: []string{"bob"}}}, rule: []obligation.Approve{{By: []string{"role:lead"}}}, caller: other, who: lead},
		"anybody of a tenant":            {rule: []obligation.Approve{{By: []string{"*/*"}}}, caller: other, who: foreign, counts: true},
		"nobody of a tenant":             {rule: []obligation.Approve{{By: []string{"*/*"}}}, caller: other, who: lead},
		"the role of any tenant":         {rule: []obligation.Approve{{By: []string{"role:*/lead"}}}, caller: other, who: foreign, counts: true},
		"everybody is of no tenant":      {rule: []obligation.Approve{{By: []string{"*"}}}, caller: other, who: foreign, asks: true},
		"who may, asked by their client": {rule: []obligation.Approve{{By: []string{"role:lead"}}}, caller: lead, who: lead, counts: true, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Hold = -1
			q, _ := newQueue(t, tt.options)
			asked := ask("c1")
			asked.Call.Who, asked.Approvers = tt.caller, tt.rule
			_, err := q.Approve(t.Context(), asked)
			var p *gate.Pending
			if !errors.As(err, &p) || p.CanAnswer != tt.asks {
				t.Fatalf("the question: %+v, %v", p, err)
			}
			if _, err = q.DecideAs(t.Context(), tt.who, p.ID, gate.Answer{Verdict: gate.Approved, Destinations: true}, "cli:"+match.Name(tt.who.Tenant, tt.who.ID), ""); err == nil {
				t.Error("an answer for destinations that the call has not")
			}
			_, err = q.DecideAs(t.Context(), tt.who, p.ID, gate.Answer{Verdict: gate.Approved}, "cli:"+match.Name(tt.who.Tenant, tt.who.ID), "")
			if (err == nil) != tt.counts {
				t.Errorf("the answer: %v", err)
			}
			asked.Call.Brought.Approval = &gate.Answered{ID: p.ID, Answer: gate.Answer{Verdict: gate.Approved}}
			if _, err := q.Approve(t.Context(), asked); (err == nil) != (tt.asks || tt.counts && tt.caller == tt.who) {
				t.Errorf("an answer that the client brings: %v", err)
			}
		})
	}
}
