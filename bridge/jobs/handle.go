package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// Status returns a job of an owner. The error is a [*HandleError] if there is none.
func (r *Runner) Status(ctx context.Context, who gate.Owner, id string) (Job, error) {
	read := func() (Job, error) { return r.o.Store.Job(ctx, who, id) }
	j, err := read()
	if err != nil {
		return Job{}, err
	}
	return r.now(j, read)
}

// now returns a job that was read as it is now. One that was kept as running, and does not
// run, has ended meanwhile, and is read again: its end is kept before it goes.
func (r *Runner) now(j Job, read func() (Job, error)) (Job, error) {
	if !j.Terminal() && j.Node == r.o.Node && r.run(j.Owner, j.ID) == nil {
		var err error
		if j, err = read(); err != nil {
			return Job{}, err
		}
		if !j.Terminal() { // the store has failed at its end
			j.State, j.Code, j.Reason, j.Ended = Failed, codes.Protocol, reasonLost, j.Started
		}
	}
	if j.Terminal() && !time.Now().Before(j.Expires()) {
		j.Expired, j.Size = true, 0
	}
	return j, nil
}

// run returns a job of an owner that is under way here, or nil.
func (r *Runner) run(who gate.Owner, id string) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.runs[id]; one != nil && one.job.Owner == who {
		return one
	}
	return nil
}

// Wait returns a job once it has ended. The error is a [*HandleError], or ctx's.
func (r *Runner) Wait(ctx context.Context, who gate.Owner, id string) (Job, error) {
	if one := r.run(who, id); one != nil {
		select {
		case <-one.done:
		case <-ctx.Done():
			return Job{}, ctx.Err()
		}
	}
	return r.waitElsewhere(ctx, who, id)
}

// waitElsewhere waits for the end of a job that another node carries out.
func (r *Runner) waitElsewhere(ctx context.Context, who gate.Owner, id string) (Job, error) {
	for {
		j, err := r.Status(ctx, who, id)
		if err != nil || !r.elsewhere(j) {
			return j, err
		}
		select {
		case <-ctx.Done():
			return Job{}, ctx.Err()
		case <-time.After(look):
		}
	}
}

// elsewhere reports whether another node carries out a job.
func (r *Runner) elsewhere(j Job) bool {
	_, shared := r.o.Store.(Shared)
	return shared && !j.Terminal() && j.Node != r.o.Node
}

// Result returns a job with what came of its call: a Doc that is absent if there is no
// result, with the Labels that it teaches. A session other than the one in which the
// job was started learns them before anybody in it reads the result: that is for the
// caller to see to, with [gate.Permit.Recall] or [gate.Gate.Recall]. The error is a
// [*HandleError], or [ErrRunning].
func (r *Runner) Result(ctx context.Context, who gate.Owner, id string) (Job, gate.Result, error) {
	var doc gate.Doc
	read := func() (j Job, err error) {
		j, doc, err = r.o.Store.JobResult(ctx, who, id)
		return j, err
	}
	j, err := read()
	if err == nil {
		j, err = r.now(j, read)
	}
	if err != nil {
		return Job{}, gate.Result{}, err
	}
	switch {
	case j.Expired:
		return j, gate.Result{}, &HandleError{ID: id, Expired: true}
	case !j.Terminal():
		return j, gate.Result{}, ErrRunning
	}
	return j, gate.Result{Doc: doc, IsError: doc.Get("isError").True(), Labels: j.Labels}, nil
}

// Cancel ends a job if it runs, and returns it as it is then: a call that does not end
// at once may still be running. Why is kept with the reason of its end; "" is nothing. The error is a
// [*HandleError], or ctx's.
func (r *Runner) Cancel(ctx context.Context, who gate.Owner, id, why string) (Job, error) {
	reason := reasonCancelled
	if why != "" {
		reason += ": " + why
	}
	if one := r.run(who, id); one != nil {
		one.cancel(errors.New(reason))
		waited := time.NewTimer(cancelTime)
		defer waited.Stop()
		select {
		case <-one.done:
		case <-waited.C:
		case <-ctx.Done():
			return Job{}, ctx.Err()
		}
	}
	j, err := r.Status(ctx, who, id)
	if err != nil || !r.elsewhere(j) {
		return j, err
	}
	if err := r.o.Store.(Shared).AskCancel(ctx, who, id, reason); err != nil {
		return Job{}, err
	}
	waited, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	if ended, err := r.waitElsewhere(waited, who, id); waited.Err() == nil {
		return ended, err
	}
	return r.Status(ctx, who, id)
}

// List returns jobs of an owner: see [Store.Jobs].
func (r *Runner) List(ctx context.Context, who gate.Owner, after string, limit int) ([]Job, error) {
	all, err := r.o.Store.Jobs(ctx, who, after, limit)
	if err != nil {
		return nil, err
	}
	for i, j := range all {
		all[i], err = r.now(j, func() (Job, error) { return r.o.Store.Job(ctx, who, j.ID) })
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
