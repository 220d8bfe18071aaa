package jobs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// underWay is a call that has begun already.
func underWay(t *testing.T, do func(context.Context) (gate.Result, error)) jobs.UnderWay {
	life, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	c := call()
	c.ID = "c"
	return jobs.UnderWay{Call: c, Life: life, Cancel: cancel, Outcome: func() (gate.Result, error) { return do(life) }}
}

// A call that is carried out already becomes a job like any other.
func TestAdopt(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(context.Context) (gate.Result, error)
		then   func(*jobs.Runner, string)
		state  jobs.State
		reason string
	}{
		"it ends by itself": {
			func(context.Context) (gate.Result, error) { time.Sleep(time.Minute); return answer, nil },
			func(*jobs.Runner, string) {}, jobs.Completed, "",
		},
		"it was refused after all": {
			func(context.Context) (gate.Result, error) {
				return gate.Result{}, &gate.Refusal{Step: step.Approve, Reason: "no"}
			},
			func(*jobs.Runner, string) {}, jobs.Failed, "refused_approve",
		},
		"its owner cancels it": {
			forever, func(r *jobs.Runner, id string) { _, _ = r.Cancel(context.Background(), alice.Owner, id, "") }, jobs.Cancelled, "the job was cancelled",
		},
		"the gateway ends": {
			forever, func(r *jobs.Runner, _ string) { r.Close(context.Background()) }, jobs.Cancelled, "the gateway was shut down while the call ran",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := runner(t, jobs.Options{})
				j, err := r.Adopt(t.Context(), underWay(t, tt.do))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := r.Status(t.Context(), alice.Owner, j.ID); err != nil || got.State != jobs.Running && tt.state != jobs.Failed || got.Call != "c" {
					t.Errorf("it begins as %+v, %v", got, err)
				}
				tt.then(r, j.ID)
				if got := wait(t, r, j.ID); got.State != tt.state || got.Reason != tt.reason {
					t.Errorf("job %+v", got)
				}
			})
		})
	}
}

// A call that cannot become a job stays whose it is.
func TestAdoptThatIsRefused(t *testing.T) {
	for name, o := range map[string]jobs.Options{
		"too many":       {Each: 1},
		"it is not kept": {Store: unkept{memory(t)}},
	} {
		r := runner(t, o)
		if o.Store == nil {
			start(t, r, granted(forever))
		}
		c := underWay(t, forever)
		c.Outcome = func() (gate.Result, error) {
			t.Errorf("%s: it was waited for", name)
			return gate.Result{}, nil
		}
		if _, err := r.Adopt(t.Context(), c); err == nil || c.Life.Err() != nil {
			t.Errorf("%s: %v, and the call: %v", name, err, c.Life.Err())
		}
	}
}

// unkept is a store that keeps no more jobs.
type unkept struct{ jobs.Store }

func (unkept) AddJob(context.Context, jobs.Job) error { return errors.New("disk full") }
