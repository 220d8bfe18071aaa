package approval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
)

func by(a askerFunc) func(*gate.Question) {
	return func(q *gate.Question) { q.Call.Client = &gatetest.Client{OnApprove: a} }
}

func answering(id string, v gate.Verdict) func(*gate.Question) {
	return func(q *gate.Question) {
		q.Call.Brought.Approval = &gate.Answered{ID: id, Answer: gate.Answer{Verdict: v}}
	}
}

type askerFunc func(context.Context, gate.Pending) (gate.Answer, error)

func says(v gate.Verdict) askerFunc {
	return func(context.Context, gate.Pending) (gate.Answer, error) { return gate.Answer{Verdict: v}, nil }
}

func TestAskClient(t *testing.T) {
	silent := func(ctx context.Context, _ gate.Pending) (gate.Answer, error) {
		<-ctx.Done()
		return gate.Answer{}, ctx.Err()
	}
	broken := func(context.Context, gate.Pending) (gate.Answer, error) {
		return gate.Answer{}, errors.New("the client cannot")
	}
	panics := func(context.Context, gate.Pending) (gate.Answer, error) { panic("oops") }
	client, both := []approval.Channel{approval.Client}, []approval.Channel{approval.Client, approval.CLI}
	for name, tt := range map[string]struct {
		asker    askerFunc
		channels []approval.Channel
		took     time.Duration
		want     string
	}{
		"yes":                                {says(gate.Approved), both, 0, ""},
		"no":                                 {says(gate.Denied), both, 0, "a person has denied this call"},
		"dismissed":                          {says(gate.Dismissed), both, 0, "waits for approval"},
		"an answer that is none":             {says("perhaps"), both, 55 * time.Second, "waits for approval"},
		"no answer":                          {silent, both, 55 * time.Second, "waits for approval"},
		"cannot be asked":                    {broken, both, 55 * time.Second, "waits for approval"},
		"panics":                             {panics, both, 55 * time.Second, "waits for approval"},
		"cannot be asked, nor can others":    {broken, client, 0, "waits for approval"},
		"panics, and others cannot be asked": {panics, client, 0, "waits for approval"},
		"yes, to who must not be asked":      {says(gate.Approved), []approval.Channel{approval.CLI}, 55 * time.Second, "waits for approval"},
		"nobody at all may be asked":         {says(gate.Approved), []approval.Channel{}, 0, "cannot be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, l := newQueue(t, approval.Options{Channels: tt.channels})
				start := time.Now()
				a, err := q.Approve(t.Context(), ask("c1", by(tt.asker)))
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if tt.want != "" {
					if err == nil || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("error %v, want %q", err, tt.want)
					}
					return
				}
				if err != nil || a.By != "client" {
					t.Errorf("approval %+v, error %v", a, err)
				}
				if diff := cmp.Diff([]string{"requested", "approved client", "redeemed client"}, l.states()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The client need not answer what an operator has answered, and gets what a person has to know.
func TestOperatorIsFaster(t *testing.T) {
	for _, late := range []gate.Answer{{Verdict: gate.Denied}, {Verdict: gate.Approved, Always: true}} {
		synctest.Test(t, func(t *testing.T) {
			q, _ := newQueue(t, approval.Options{
				Remedy: func(id string) string { return "approve " + id },
				Always: func(context.Context, approval.Request) error {
					t.Error("granted for good by an answer that does not count")
					return nil
				},
			})
			asker := askerFunc(func(ctx context.Context, p gate.Pending) (gate.Answer, error) {
				if !strings.Contains(p.Inquiry.Text(), `- /path: "/a"`) || p.Expires.IsZero() {
					t.Errorf("asked %+v", p)
				}
				time.Sleep(time.Second)
				decide(t, q, p.ID, gate.Approved)
				<-ctx.Done()
				return late, nil
			})
			if a, err := q.Approve(t.Context(), ask("c1", by(asker))); err != nil || a.By != "cli:local" {
				t.Errorf("approval %+v, error %v", a, err)
			}
		})
	}
}

func TestAnswered(t *testing.T) {
	q, l := newQueue(t, approval.Options{})
	_, err := q.Approve(t.Context(), ask("c1"))
	p, ok := errors.AsType[*gate.Pending](err)
	if !ok || !p.CanAnswer {
		t.Fatalf("error %+v", err)
	}
	if again := waits(t, q, ask("c2", answering(p.ID, gate.Dismissed))); again != p.ID {
		t.Errorf("dismissed: %s, want %s", again, p.ID)
	}
	refused(t, q, ask("c3", answering("n1-none", gate.Approved)), "was not asked for here, or has expired")
	refused(t, q, ask("c3", answering(p.ID, "perhaps")), "not an answer")
	if a, err := q.Approve(t.Context(), ask("c3", answering(p.ID, gate.Approved))); err != nil || a.By != "client" {
		t.Errorf("approval %+v, error %v", a, err)
	}
	refused(t, q, ask("c4", answering(p.ID, gate.Approved)), "another call has used it")
	if diff := cmp.Diff([]string{"requested", "approved client", "redeemed client"}, l.states()); diff != "" {
		t.Error(diff)
	}

	q, _ = newQueue(t, approval.Options{Channels: []approval.Channel{approval.CLI}, Hold: time.Millisecond})
	_, err = q.Approve(t.Context(), ask("c1"))
	if p, ok = errors.AsType[*gate.Pending](err); !ok || p.CanAnswer {
		t.Errorf("error %+v", err)
	}
	refused(t, q, ask("c2", answering(p.ID, gate.Approved)), "does not accept answers of clients")

	q, _ = newQueue(t, approval.Options{Channels: []approval.Channel{approval.Client}})
	if _, err := q.Decide(t.Context(), waits(t, q, ask("c1")), gate.Approved, "cli:local", ""); err == nil || !strings.Contains(err.Error(), "approvals.channels") {
		t.Errorf("error %v", err)
	}
}

// A call is held until an operator has answered, or for as long as calls are held.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t, approval.Options{})
		for _, tt := range []struct {
			after   time.Duration
			verdict gate.Verdict
			took    time.Duration
			want    string
		}{
			{30 * time.Second, gate.Approved, 30 * time.Second, ""},
			{30 * time.Second, gate.Denied, 30 * time.Second, "a person has denied this call"},
			{time.Minute, gate.Approved, 55 * time.Second, "waits for approval"},
		} {
			args := gate.MustDoc(fmt.Sprintf(`{"path":%q}`, tt.want))
			one := ask("c1", held, func(q *gate.Question) { q.Call.Args = args })
			start := time.Now()
			go func() {
				time.Sleep(tt.after)
				for _, r := range q.Pending(context.Background()) {
					if _, err := q.Decide(context.Background(), r.ID, tt.verdict, "cli:local", ""); err != nil {
						t.Error(err)
					}
				}
			}()
			_, err := q.Approve(t.Context(), one)
			if took := time.Since(start); took != tt.took {
				t.Errorf("held for %s, want %s", took, tt.took)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			synctest.Wait()
			time.Sleep(tt.after)
		}
		one := ask("c2", held, func(q *gate.Question) { q.Call.Args = gate.MustDoc(`{"path":"waits for approval"}`) })
		if _, err := q.Approve(t.Context(), one); err != nil { // approved after it was held
			t.Error(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Approve(ctx, ask("c3", held)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
	})
}
