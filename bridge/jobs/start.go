package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Do carries out a call: [gate.Gate.Do], or [gate.Permit.Relay] of the call that asks
// for the job.
type Do func(ctx context.Context, c gate.Call) (gate.Result, error)

// A run is a job that is under way here.
type run struct {
	job     Job
	cancel  context.CancelCauseFunc
	granted chan struct{} // closed when the gate has let the call pass
	done    chan struct{} // closed when the job has ended and that is kept

	refused error // why it never began; not before done

	// Guarded by the runner's mu: known means that a client gets its id, ending that its end is
	// being kept.
	known, ending bool
}

// Start begins to carry out a call, in its session, and returns once the gate has let
// it pass: a refusal before that is the error, and there is no job. If that takes long,
// because a person is asked, the job is returned while it waits.
//
// The job outlives ctx from then on, and its client, which gets no progress. Its server can ask the
// call's Client what that declares, which has to outlive ctx then. Keep is how long its outcome is
// to be kept; zero, or longer than the runner does, is as long as that.
func (r *Runner) Start(ctx context.Context, do Do, c gate.Call, keep time.Duration) (Job, error) {
	if c.ID == "" {
		c.ID = gate.NewID()
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	one := r.newRun(c, keep, cancel)
	if err := r.begin(ctx, one); err != nil {
		cancel(nil)
		return Job{}, err
	}
	c.Client, c.Brought = newStarter(c, one), gate.Brought{}
	go r.follow(life, one, func() (gate.Result, error) { return do(life, c) }) // ends with the call
	return r.started(ctx, one)
}

// starter is the client of a job's call: the client that started it, as far as it can be asked. It
// does not wait for the answer.
type starter struct {
	gate.Nobody
	of      gate.Client
	reach   gate.Reach
	granted func()
}

func newStarter(c gate.Call, one *run) gate.Client {
	s := &starter{of: c.Client, reach: c.Reach(), granted: sync.OnceFunc(func() { close(one.granted) })}
	s.reach.Rounds, s.reach.Hears, s.reach.Detached, s.reach.MayBeTask = false, false, true, false
	return s
}

// Reach implements [gate.Client].
func (s *starter) Reach() gate.Reach { return s.reach }

// Approve implements [gate.Client].
func (s *starter) Approve(ctx context.Context, p gate.Pending) (gate.Answer, error) {
	return s.of.Approve(ctx, p)
}

// Request implements [gate.Client].
func (s *starter) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	return s.of.Request(ctx, method, params)
}

// Granted implements [gate.Client].
func (s *starter) Granted() { s.granted() }

// UnderWay is a call that is carried out already.
type UnderWay struct {
	gate.Call
	// Life is the context of the call, and Cancel ends it, for a reason.
	Life   context.Context
	Cancel context.CancelCauseFunc
	// Outcome returns when the call has ended. It is called once.
	Outcome func() (gate.Result, error)
}

// Adopt makes a job of a call that is carried out already, and that the client which waited for it
// leaves to the runner. The job is kept when Adopt returns; with an error there is none, and the
// call is still the caller's.
func (r *Runner) Adopt(ctx context.Context, c UnderWay) (Job, error) {
	one := r.newRun(c.Call, 0, c.Cancel)
	one.known = true
	if err := r.begin(ctx, one); err != nil {
		return Job{}, err
	}
	go r.follow(c.Life, one, c.Outcome) // ends with the call
	return one.job, nil
}

func (r *Runner) newRun(c gate.Call, keep time.Duration, cancel context.CancelCauseFunc) *run {
	if most, _ := r.bounds(); keep <= 0 || keep > most {
		keep = most
	}
	return &run{
		job: Job{
			ID: r.newID(), Owner: c.Who.Owner, Node: r.o.Node, Boot: r.boot, Tool: c.Name[:min(len(c.Name), maxTool)], Call: c.ID,
			State: Running, Started: time.Now(), Keep: keep,
		},
		cancel: cancel, granted: make(chan struct{}), done: make(chan struct{}),
	}
}

// begin keeps a job that begins. If it succeeds, the caller calls work.End at the end of the job.
func (r *Runner) begin(ctx context.Context, one *run) error {
	if err := r.enter(one); err != nil {
		return err
	}
	if err := r.o.Store.AddJob(ctx, one.job); err != nil {
		r.leave(one)
		r.work.End()
		return fmt.Errorf("keep job: %w", err)
	}
	return nil
}

// follow waits for the end of a call, and keeps its outcome.
func (r *Runner) follow(life context.Context, one *run, outcome func() (gate.Result, error)) {
	defer r.work.End()
	defer one.cancel(nil)
	defer context.AfterFunc(r.life, func() { one.cancel(context.Cause(r.life)) })()
	res, err := outcome()
	r.ends(life, one, res, err)
}

// NodeOf returns the gateway that the id of a job names; "" if it names none.
func NodeOf(id string) string { return id[:max(0, strings.LastIndex(id, "-"))] }

// newID returns an id of 128 random bits.
// Runs reports whether a job of an owner runs here.
func (r *Runner) Runs(of gate.Owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.each[of] > 0
}

func (r *Runner) newID() string { return r.o.Node + "-" + strings.ToLower(rand.Text()) }

// enter takes a place among the jobs that run. If it succeeds, the caller calls work.End.
func (r *Runner) enter(one *run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := func(why string) error {
		return &gate.Refusal{Step: step.Busy, Call: one.job.Call, Name: one.job.Tool, Reason: why}
	}
	switch {
	case len(r.runs) >= min(r.o.Running, r.o.Max):
		return busy(fmt.Sprintf("%d jobs run already", len(r.runs)))
	case r.each[one.job.Owner] >= r.o.Each:
		return busy(fmt.Sprintf("%d jobs of yours run already; wait for one of them, or cancel it", r.o.Each))
	case !r.work.Begin():
		return busy("the gateway is shutting down")
	}
	r.runs[one.job.ID] = one
	r.each[one.job.Owner]++
	return nil
}

func (r *Runner) leave(one *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, one.job.ID)
	if r.each[one.job.Owner]--; r.each[one.job.Owner] == 0 {
		delete(r.each, one.job.Owner)
	}
}

// started waits until it is known whether the call passes.
func (r *Runner) started(ctx context.Context, one *run) (Job, error) {
	waited := time.NewTimer(startTime)
	defer waited.Stop()
	select {
	case <-one.granted:
	case <-one.done:
	case <-waited.C:
	case <-ctx.Done():
		one.cancel(errors.New(reasonCancelled))
		return Job{}, ctx.Err()
	}
	r.mu.Lock()
	one.known = true
	ending := one.ending
	r.mu.Unlock()
	if ending {
		<-one.done
		if one.refused != nil {
			return Job{}, one.refused
		}
	}
	return one.job, nil
}
