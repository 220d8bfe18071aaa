package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// ends keeps the outcome of a call. It keeps nothing of a call that the gate has not let pass and
// that no client knows of.
func (r *Runner) ends(ctx context.Context, one *run, res gate.Result, err error) {
	r.mu.Lock()
	one.ending = true
	known := one.known
	r.mu.Unlock()
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	select {
	case <-one.granted:
		known = true
	default:
	}
	if !known && err != nil {
		if rerr := r.o.Store.RemoveJob(keep, one.job.ID); rerr != nil {
			r.o.Log.LogAttrs(ctx, slog.LevelWarn, "job not removed", slog.String("job", one.job.ID), slog.Any("error", rerr))
		}
		one.refused = err
		r.leave(one)
		close(one.done)
		return
	}
	j := r.outcome(ctx, one.job, res, err)
	r.keep(keep, j, res)
	r.leave(one)
	close(one.done)
}

// outcome returns the job as it has ended.
func (r *Runner) outcome(ctx context.Context, j Job, res gate.Result, err error) Job {
	j.Ended, j.Code, j.Labels, j.Size = time.Now(), gate.Code(err), res.Labels, int64(len(res.Doc.Raw()))
	switch {
	case err == nil && !res.IsError:
		j.State = Completed
	case err == nil:
		j.State, j.Code, j.Reason = Failed, codes.ToolError, reasonTool
	case ctx.Err() != nil && j.Code == codes.Cancelled:
		j.State, j.Reason = Cancelled, context.Cause(ctx).Error()
	default:
		j.State, j.Reason = Failed, r.o.Public(err)
	}
	return j
}

// keep keeps the outcome, or that it could not be kept.
func (r *Runner) keep(ctx context.Context, j Job, res gate.Result) {
	err := r.o.Store.EndJob(ctx, j, res.Doc)
	if err != nil {
		reason := reasonLost
		if errors.Is(err, ErrTooLarge) {
			reason = reasonTooLarge
		}
		r.o.Log.LogAttrs(ctx, slog.LevelWarn, "result not kept", slog.String("job", j.ID), slog.Any("error", err))
		j.State, j.Reason, j.Size = Failed, reason, 0
		err = r.o.Store.EndJob(ctx, j, gate.Doc{})
	}
	if err == nil {
		err = r.Sweep(ctx)
	}
	if err != nil {
		r.o.Log.LogAttrs(ctx, slog.LevelError, "job not kept", slog.String("job", j.ID), slog.Any("error", err))
	}
}
