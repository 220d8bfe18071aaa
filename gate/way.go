package gate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// way is one call on its way: what every step needs, and the evidence. A step returns
// what it finds to whoever takes the call on; into the record it writes for those who
// read the log, and no step reads there what is to be done.
type way struct {
	*Parts
	gate    *Gate // nil for what is done within a call
	relayed bool  // made by [Permit.Relay]
	rec     Record
	step    Step // under way
	mark    time.Time
}

func outcome(res Result, err error) string {
	if err == nil && res.IsError {
		return CodeToolError
	}
	return Code(err)
}

// next ends the time of the step under way and begins that of another.
func (w *way) next(s Step) {
	if s == w.step {
		return
	}
	now := time.Now()
	w.rec.Steps = append(w.rec.Steps, StepTime{w.step, now.Sub(w.mark)})
	w.step, w.mark = s, now
}

// end completes the record with the outcome and keeps it. The error is err, or
// says that there is no record.
func (w *way) end(ctx context.Context, code string, err error) error {
	w.close(code, err)
	if rerr := w.record(ctx, &w.rec); rerr != nil {
		return w.unrecorded(rerr, err)
	}
	return err
}

// close completes the record with the outcome.
func (w *way) close(code string, err error) {
	w.next("")
	w.rec.Code, w.rec.Took = code, w.mark.Sub(w.rec.Time)
	if err != nil {
		w.rec.Err = err
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		w.rec.Reason = refused.Reason
	}
}

// unrecorded is the outcome of what there is no record of, because of rerr. What was
// carried out is not told like what never left.
func (w *way) unrecorded(rerr, err error) error {
	r := w.refuse(StepRecord, "the audit log cannot be written", rerr)
	if r.Invoked = w.invoked(err); r.Invoked {
		r.Reason = "the call was carried out, and its result is withheld because the audit log cannot be written; see what it has done before you call again"
	}
	if _, refused := errors.AsType[*Refusal](err); r.Invoked && err != nil && !refused {
		r.Reason = "the call was sent and failed, perhaps after it was carried out, and the audit log cannot be written; see what it has done before you call again"
	}
	return errors.Join(r, err)
}

// invoked reports whether the upstream has had the call, which has come to err since. Of
// what a tool has carried out, that other call decides.
func (w *way) invoked(err error) bool {
	if of, ok := errors.AsType[*Relayed](err); ok {
		r, refused := errors.AsType[*Refusal](of)
		return !refused || r.Invoked
	}
	switch Code(err) {
	case "not_connected", "spawn_failed":
		return false
	}
	return w.step == StepInvoke || slices.ContainsFunc(w.rec.Steps, func(s StepTime) bool { return s.Step == StepInvoke })
}

// recordGranted keeps the record that the call is let pass.
func (w *way) recordGranted(ctx context.Context) error {
	rec := w.rec
	rec.Event, rec.Steps = Granted, slices.Clone(w.rec.Steps)
	if err := w.record(ctx, &rec); err != nil {
		return w.fail(ctx, "the audit log cannot be written", err)
	}
	return nil
}

// found writes down what was found in what came with the call, or in its result.
func (w *way) found(all ...Finding) {
	w.rec.Findings = append(w.rec.Findings, all[:min(len(all), max(0, maxFindings-len(w.rec.Findings)))]...)
}

// record gives the record to the recorder. The end of the call's context does
// not end the record.
func (w *way) record(ctx context.Context, r *Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	return w.Recorder.Record(context.WithoutCancel(ctx), r)
}

// fail refuses the call at the step under way. If the caller has gone, that is
// the outcome, whatever the step says; and a panic at the upstream is the
// upstream's failure, not a refusal.
func (w *way) fail(ctx context.Context, reason string, cause error) error {
	if cerr := ctx.Err(); cerr != nil {
		return fmt.Errorf("%q: %w at %s (%v)", w.rec.Call.Name, cerr, w.step, cause)
	}
	if w.step == StepInvoke {
		return fmt.Errorf("%q: %w", w.rec.Call.Name, cause)
	}
	return w.refuse(w.step, reason, cause)
}

func (w *way) refuse(s Step, reason string, cause error) *Refusal {
	return &Refusal{Step: s, Call: w.rec.Call.ID, Name: w.rec.Call.Name, Reason: reason, Err: cause}
}

// caught is deferred, and makes a failure of a panic.
func (w *way) caught(ctx context.Context, err *error) {
	v := recover()
	if v == nil {
		return
	}
	if w.step == StepInvoke && w.rec.Call.Action.IsPeerRequest() { // the client's, and no refusal has that step
		w.step = StepValidateOutput
	}
	*err = w.fail(ctx, "internal error", panicked(v))
}

// panicked is the error for the value of a panic, for the operator.
func panicked(v any) error { return fmt.Errorf("panic: %v\n%s", v, debug.Stack()) }
