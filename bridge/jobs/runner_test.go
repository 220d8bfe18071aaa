package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/store"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
)

var (
	alice  = &gate.Principal{Owner: gate.Owner{ID: "alice"}}
	bob    = gate.Owner{ID: "bob"}
	answer = gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"42"}]}`), Labels: gate.NewLabels("untrusted")}
)

func memory(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func runner(t *testing.T, o jobs.Options) *jobs.Runner {
	t.Helper()
	if o.Store == nil {
		o.Store = memory(t)
	}
	r, err := jobs.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

func call() gate.Call {
	return gate.Call{Action: gate.CallTool, Name: "files__read", Who: alice, Session: gate.SessionKey{Owner: alice.Owner, ID: "s"}}
}

// granted returns a Do that the gate lets pass, and that then does f.
func granted(f func(context.Context) (gate.Result, error)) jobs.Do {
	return func(ctx context.Context, c gate.Call) (gate.Result, error) {
		c.Client.Granted()
		return f(ctx)
	}
}

func start(t *testing.T, r *jobs.Runner, do jobs.Do) jobs.Job {
	t.Helper()
	j, err := r.Start(t.Context(), do, call(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func wait(t *testing.T, r *jobs.Runner, id string) jobs.Job {
	t.Helper()
	j, err := r.Wait(t.Context(), alice.Owner, id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func forever(ctx context.Context) (gate.Result, error) {
	<-ctx.Done()
	return gate.Result{}, fmt.Errorf("call: %w", ctx.Err())
}

func TestOutcomes(t *testing.T) {
	failure := gate.Result{Doc: gate.MustDoc(`{"content":[],"isError":true}`), IsError: true}
	unsafe := &gate.Refusal{Step: step.Sanitize, Reason: "the result cannot be sanitized"}
	tests := map[string]struct {
		result gate.Result
		err    error
		state  jobs.State
		code   string
		reason string
		kept   bool
	}{
		"a result completes it":                    {answer, nil, jobs.Completed, "ok", "", true},
		"a tool's own failure is its result":       {failure, nil, jobs.Failed, "tool_error", "the tool reports a failure", true},
		"a result that is refused is none":         {gate.Result{}, unsafe, jobs.Failed, "refused_sanitize", "public: refused_sanitize", false},
		"a call that took too long has failed":     {gate.Result{}, context.DeadlineExceeded, jobs.Failed, "timeout", "public: timeout", false},
		"an end that nobody asked for is failure":  {gate.Result{}, context.Canceled, jobs.Failed, "cancelled", "public: cancelled", false},
		"an error that nobody knows is a failure ": {gate.Result{}, errors.New("x"), jobs.Failed, "protocol", "public: protocol", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := runner(t, jobs.Options{Public: func(err error) string { return "public: " + gate.Code(err) }})
			j, err := r.Start(t.Context(), granted(func(context.Context) (gate.Result, error) { return tt.result, tt.err }), call(), 0)
			if err != nil || j.State != jobs.Running {
				t.Fatalf("it starts as %+v, %v", j, err)
			}
			got := wait(t, r, j.ID)
			if got.State != tt.state || got.Code != tt.code || got.Reason != tt.reason || got.Expired {
				t.Errorf("job %+v", got)
			}
			_, res, err := r.Result(t.Context(), alice.Owner, j.ID)
			if err != nil || res.Doc.IsZero() == tt.kept || res.IsError != tt.result.IsError || !res.Labels.Cover(tt.result.Labels) {
				t.Errorf("result %+v, %v", res, err)
			}
		})
	}
}

func TestRefusedAtTheStart(t *testing.T) {
	db := memory(t)
	r := runner(t, jobs.Options{Store: db})
	want := &gate.Refusal{Step: step.Authorize, Reason: "not allowed by policy"}
	_, err := r.Start(t.Context(), func(context.Context, gate.Call) (gate.Result, error) { return gate.Result{}, want }, call(), 0)
	if err != error(want) {
		t.Errorf("error %v, want the refusal", err)
	}
	if all, err := r.List(t.Context(), alice.Owner, "", 9); err != nil || len(all) != 0 {
		t.Errorf("a call that was refused has left %v, %v", all, err)
	}
}

// A job cannot ask the client of its call, which has gone.
func TestJobHasNoClient(t *testing.T) {
	r := runner(t, jobs.Options{})
	c := call()
	c.Client = &gatetest.Client{Can: gate.Reach{Rounds: true}, OnNotify: func(context.Context, string, gate.Doc) {}}
	c.Brought.State = "s"
	var got gate.Call
	j, err := r.Start(t.Context(), func(_ context.Context, c gate.Call) (gate.Result, error) {
		c.Client.Granted()
		got = c
		return answer, nil
	}, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, r, j.ID)
	if client := got.Reach(); client.Hears || !client.Capabilities.IsZero() || client.Rounds || !client.Detached || got.Brought.State != "" {
		t.Error("the call of a job has a client")
	}
	if got.Session != c.Session || got.Who != c.Who || got.ID == "" || j.Call != got.ID {
		t.Errorf("the call is %+v", got)
	}
}

func TestOthersSeeNothing(t *testing.T) {
	r := runner(t, jobs.Options{})
	running := start(t, r, granted(forever))
	done := start(t, r, granted(func(context.Context) (gate.Result, error) { return answer, nil }))
	wait(t, r, done.ID)
	for _, who := range []gate.Owner{bob, {Tenant: "t", ID: "alice"}, {}} {
		for _, id := range []string{running.ID, done.ID} {
			_, status := r.Status(t.Context(), who, id)
			_, waited := r.Wait(t.Context(), who, id)
			_, cancelled := r.Cancel(t.Context(), who, id, "")
			_, _, result := r.Result(t.Context(), who, id)
			_, listed := r.List(t.Context(), who, id, 9)
			for what, err := range map[string]error{"status": status, "wait": waited, "cancel": cancelled, "result": result, "list": listed} {
				h, ok := errors.AsType[*jobs.HandleError](err)
				if !ok || h.Code() != jobs.CodeNotFound {
					t.Errorf("%s of %+v: %v, want that there is no such job", what, who, err)
				}
			}
		}
		if all, err := r.List(t.Context(), who, "", 9); err != nil || len(all) != 0 {
			t.Errorf("%+v lists %v, %v", who, all, err)
		}
	}
	if j, err := r.Status(t.Context(), alice.Owner, running.ID); err != nil || j.State != jobs.Running {
		t.Errorf("somebody else has ended the job: %+v, %v", j, err)
	}
}

func TestCancel(t *testing.T) {
	r := runner(t, jobs.Options{})
	j := start(t, r, granted(forever))
	if _, _, err := r.Result(t.Context(), alice.Owner, j.ID); !errors.Is(err, jobs.ErrRunning) {
		t.Errorf("error %v, want that it runs", err)
	}
	for range 2 {
		got, err := r.Cancel(t.Context(), alice.Owner, j.ID, "")
		if err != nil || got.State != jobs.Cancelled || got.Code != codes.Cancelled || got.Reason != "the job was cancelled" {
			t.Errorf("job %+v, %v", got, err)
		}
	}
}

// A client that goes before it has the handle leaves nothing behind.
func TestClientGoesBeforeTheHandle(t *testing.T) {
	r := runner(t, jobs.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	_, err := r.Start(ctx, func(ctx context.Context, _ gate.Call) (gate.Result, error) {
		defer close(ended)
		cancel()
		return forever(ctx)
	}, call(), 0)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-ended
	r.Close(t.Context()) // waits for the end to be kept
	if all, err := r.List(t.Context(), alice.Owner, "", 9); err != nil || len(all) != 0 {
		t.Errorf("it has left %v, %v", all, err)
	}
}

func TestJobOutlivesItsRequest(t *testing.T) {
	r := runner(t, jobs.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	goOn := make(chan struct{})
	j, err := r.Start(ctx, granted(func(ctx context.Context) (gate.Result, error) {
		<-goOn
		return answer, ctx.Err()
	}), call(), 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	close(goOn)
	if got := wait(t, r, j.ID); got.State != jobs.Completed {
		t.Errorf("job %+v", got)
	}
}

func TestRestart(t *testing.T) {
	db := memory(t)
	first := runner(t, jobs.Options{Store: db, Node: "n"})
	done := start(t, first, granted(func(context.Context) (gate.Result, error) { return answer, nil }))
	wait(t, first, done.ID)
	running := start(t, first, granted(forever))
	elsewhere := start(t, runner(t, jobs.Options{Store: db, Node: "m"}), granted(forever))

	second := runner(t, jobs.Options{Store: db, Node: "n"})
	got, err := second.Status(t.Context(), alice.Owner, running.ID)
	if err != nil || got.State != jobs.Failed || got.Reason != "the gateway was restarted while the call ran" {
		t.Errorf("job %+v, %v", got, err)
	}
	if got, err := second.Status(t.Context(), alice.Owner, elsewhere.ID); err != nil || got.State != jobs.Running {
		t.Errorf("the job of another node is %+v, %v", got, err)
	}
	_, res, err := second.Result(t.Context(), alice.Owner, done.ID)
	if err != nil || res.Doc.String() != answer.Doc.String() || !res.Labels.Cover(answer.Labels) {
		t.Errorf("result %+v, %v", res, err)
	}
}

func TestLimits(t *testing.T) {
	r := runner(t, jobs.Options{Each: 2, Running: 3})
	started := func(who *gate.Principal) error {
		c := call()
		c.Who = who
		_, err := r.Start(t.Context(), granted(forever), c, 0)
		return err
	}
	other := &gate.Principal{Owner: bob}
	for i, tt := range []struct {
		who  *gate.Principal
		want string
	}{
		{alice, ""}, {alice, ""}, {alice, "2 jobs of yours run already"}, {other, ""}, {other, "3 jobs run already"},
	} {
		err := started(tt.who)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || gate.Code(err) != "refused_busy") {
			t.Errorf("start %d: %v, want %q", i, err, tt.want)
		}
	}
	all, err := r.List(t.Context(), alice.Owner, "", 9)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if _, err := r.Cancel(t.Context(), alice.Owner, all[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	if err := started(alice); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

func TestIDs(t *testing.T) {
	r := runner(t, jobs.Options{Node: strings.Repeat("n", 64)})
	seen := map[string]bool{}
	form := regexp.MustCompile(`^n{64}-[a-z2-7]{26}$`) // 26 letters of 5 bits
	for range 20 {
		j := start(t, r, granted(func(context.Context) (gate.Result, error) { return answer, nil }))
		if !form.MatchString(j.ID) || len(j.ID) > 128 || seen[j.ID] {
			t.Errorf("id %q", j.ID)
		}
		seen[j.ID] = true
	}
}

func TestExpiry(t *testing.T) {
	for name, tt := range map[string]struct{ asked, kept time.Duration }{
		"as long as the gateway keeps it":   {0, time.Hour},
		"as short as its client wants":      {time.Minute, time.Minute},
		"no longer than the gateway allows": {99 * time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := runner(t, jobs.Options{Keep: time.Hour})
				j, err := r.Start(t.Context(), granted(func(context.Context) (gate.Result, error) { return answer, nil }), call(), tt.asked)
				if err != nil {
					t.Fatal(err)
				}
				wait(t, r, j.ID)
				time.Sleep(tt.kept - time.Second)
				if _, _, err := r.Result(t.Context(), alice.Owner, j.ID); err != nil {
					t.Errorf("before its time: %v", err)
				}
				time.Sleep(2 * time.Second) // and nothing has been swept
				expired(t, r, j.ID)
				if err := r.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				expired(t, r, j.ID)
				if c, err := r.Counts(t.Context()); err != nil || c != (jobs.Counts{}) {
					t.Errorf("counts %+v, %v", c, err)
				}
				time.Sleep(8 * 24 * time.Hour)
				if err := r.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, err = r.Status(t.Context(), alice.Owner, j.ID)
				if h, ok := errors.AsType[*jobs.HandleError](err); !ok || h.Expired {
					t.Errorf("in the end: %v", err)
				}
			})
		})
	}
}

func expired(t *testing.T, r *jobs.Runner, id string) {
	t.Helper()
	_, _, err := r.Result(t.Context(), alice.Owner, id)
	h, ok := errors.AsType[*jobs.HandleError](err)
	if !ok || h.Code() != jobs.CodeExpired || h.ID != id {
		t.Errorf("error %v, want that it has expired", err)
	}
	if j, err := r.Status(t.Context(), alice.Owner, id); err != nil || j.State != jobs.Completed || !j.Expired || j.Size != 0 {
		t.Errorf("job %+v, %v", j, err)
	}
}

func TestSweptInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory(t)
		r := runner(t, jobs.Options{Store: db, Keep: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		var swept sync.WaitGroup
		swept.Go(func() { r.Run(ctx) })
		j := start(t, r, granted(func(context.Context) (gate.Result, error) { return answer, nil }))
		wait(t, r, j.ID)
		time.Sleep(3 * time.Minute)
		_, doc, err := db.JobResult(t.Context(), alice.Owner, j.ID)
		if err != nil || !doc.IsZero() {
			t.Errorf("the result is still kept: %s, %v", doc, err)
		}
		cancel()
		swept.Wait()
	})
}

// A call that a person has to approve makes its client wait no longer than clients do.
func TestHandleWhileApprovalIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runner(t, jobs.Options{})
		denied := &gate.Refusal{Step: step.Approve, Reason: "a person has denied it"}
		began := time.Now()
		j, err := r.Start(t.Context(), func(context.Context, gate.Call) (gate.Result, error) {
			time.Sleep(time.Hour)
			return gate.Result{}, denied
		}, call(), 0)
		if err != nil || time.Since(began) != time.Minute {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		if got := wait(t, r, j.ID); got.State != jobs.Failed || got.Code != "refused_approve" {
			t.Errorf("job %+v", got)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runner(t, jobs.Options{})
		quick := start(t, r, granted(func(context.Context) (gate.Result, error) { time.Sleep(time.Second); return answer, nil }))
		slow := start(t, r, granted(forever))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r.Drain(ctx)
		if j := wait(t, r, quick.ID); j.State != jobs.Completed {
			t.Errorf("job %+v", j)
		}
		if j := wait(t, r, slow.ID); j.State != jobs.Cancelled || j.Reason != "the gateway was shut down while the call ran" {
			t.Errorf("job %+v", j)
		}
		_, err := r.Start(t.Context(), granted(forever), call(), 0)
		if gate.Code(err) != "refused_busy" {
			t.Errorf("a start after the drain: %v", err)
		}
		r.Close(context.Background())
	})
}

// failing is a store that cannot keep some ends.
type failing struct {
	jobs.Store
	err func(gate.Doc) error
}

func (f failing) EndJob(ctx context.Context, j jobs.Job, doc gate.Doc) error {
	if err := f.err(doc); err != nil {
		return err
	}
	return f.Store.EndJob(ctx, j, doc)
}

func TestOutcomeThatCannotBeKept(t *testing.T) {
	for name, tt := range map[string]struct {
		err    func(gate.Doc) error
		reason string
	}{
		"too large": {func(d gate.Doc) error {
			if d.IsZero() {
				return nil
			}
			return jobs.ErrTooLarge
		}, "the result is larger than the gateway keeps; call the tool without a job, or for less"},
		"no room for the result": {func(d gate.Doc) error {
			if d.IsZero() {
				return nil
			}
			return errors.New("disk full")
		}, "the outcome could not be kept"},
		"no room at all": {func(gate.Doc) error { return errors.New("disk full") }, "the outcome could not be kept"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runner(t, jobs.Options{Store: failing{memory(t), tt.err}})
			j := start(t, r, granted(func(context.Context) (gate.Result, error) { return answer, nil }))
			if got := wait(t, r, j.ID); got.State != jobs.Failed || got.Reason != tt.reason {
				t.Errorf("job %+v", got)
			}
		})
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for name, o := range map[string]jobs.Options{
		"no store":        {},
		"a node's name":   {Store: memory(t), Node: "a b"},
		"a negative time": {Store: memory(t), Keep: -1},
	} {
		if _, err := jobs.New(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// late is a store that takes its time after it has read: meanwhile whatever runs ends.
type late struct {
	*store.DB
	end func()
}

func (l late) Job(ctx context.Context, who gate.Owner, id string) (jobs.Job, error) {
	defer l.end()
	return l.DB.Job(ctx, who, id)
}

func (l late) JobResult(ctx context.Context, who gate.Owner, id string) (jobs.Job, gate.Doc, error) {
	defer l.end()
	return l.DB.JobResult(ctx, who, id)
}

func (l late) Jobs(ctx context.Context, who gate.Owner, after string, limit int) ([]jobs.Job, error) {
	defer l.end()
	return l.DB.Jobs(ctx, who, after, limit)
}

// A job that ends while it is asked for has ended as it has: its outcome is not lost.
func TestEndsWhileItIsAskedFor(t *testing.T) {
	for name, ask := range map[string]func(*jobs.Runner, string) (jobs.Job, error){
		"status": func(r *jobs.Runner, id string) (jobs.Job, error) { return r.Status(t.Context(), alice.Owner, id) },
		"result": func(r *jobs.Runner, id string) (jobs.Job, error) {
			j, res, err := r.Result(t.Context(), alice.Owner, id)
			if res.Doc.String() != answer.Doc.String() {
				t.Errorf("the result is %s", res.Doc)
			}
			return j, err
		},
		"list": func(r *jobs.Runner, _ string) (jobs.Job, error) {
			all, err := r.List(t.Context(), alice.Owner, "", 1)
			if len(all) != 1 {
				t.Fatalf("jobs %v: %v", all, err)
			}
			return all[0], err
		},
	} {
		t.Run(name, func(t *testing.T) {
			let, ended := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			kept := late{memory(t), func() {
				if once.CompareAndSwap(false, true) {
					close(let)
					<-ended
				}
			}}
			r := runner(t, jobs.Options{Store: kept})
			j := start(t, r, granted(func(context.Context) (gate.Result, error) { <-let; return answer, nil }))
			go func() {
				defer close(ended)
				wait(t, r, j.ID)
			}()
			if got, err := ask(r, j.ID); err != nil || got.State != jobs.Completed {
				t.Errorf("job %+v: %v", got, err)
			}
		})
	}
}

// TestChangedBounds: a job to come is kept for as long as is said then, and no more of them than
// that.
func TestChangedBounds(t *testing.T) {
	r := runner(t, jobs.Options{Keep: time.Hour, Max: 3})
	do := granted(func(context.Context) (gate.Result, error) { return answer, nil })
	start := func() jobs.Job {
		t.Helper()
		j, err := r.Start(t.Context(), do, call(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if j, err = r.Wait(t.Context(), alice.Owner, j.ID); err != nil {
			t.Fatal(err)
		}
		return j
	}
	first := start()
	r.Change(time.Minute, 1, 0)
	second := start()
	if first.Keep != time.Hour || second.Keep != time.Minute {
		t.Errorf("kept for %s, then %s", first.Keep, second.Keep)
	}
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Result(t.Context(), alice.Owner, first.ID); err == nil {
		t.Error("two outcomes are kept of at most one")
	}
}
