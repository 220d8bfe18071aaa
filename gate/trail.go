package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/panicked"
)

// A trail is what a call leaves: the record, in the making, and the time of each step. No
// step reads in it what is to be done. It belongs to the parts that the call goes by.
type trail struct {
	*Parts
	rec  Record
	step step.Step // under way
	mark time.Time
	room [14]step.Time // for the steps of a call that takes each once
}

// begin makes an empty trail of a call.
func (t *trail) begin(p *Parts, e Event, c *Call) {
	t.Parts, t.step, t.mark = p, step.Parse, time.Now()
	t.rec = Record{Event: e, Time: t.mark, Call: c, Snapshot: p.Snapshot, Steps: t.room[:0]}
}

func outcome(res Result, err error) string {
	if err == nil && res.IsError {
		return codes.ToolError
	}
	return Code(err)
}

// next ends the time of the step under way and begins that of another.
func (t *trail) next(s step.Step) {
	if s == t.step {
		return
	}
	now := time.Now()
	t.rec.Steps = append(t.rec.Steps, step.Time{Step: t.step, Took: now.Sub(t.mark)})
	t.step, t.mark = s, now
}

// end completes the record with the outcome and keeps it. The error is err, or
// says that there is no record.
func (t *trail) end(ctx context.Context, code string, err error) error {
	t.close(code, err)
	if rerr := t.record(ctx, &t.rec); rerr != nil {
		return t.unrecorded(rerr, err)
	}
	return err
}

// close completes the record with the outcome.
func (t *trail) close(code string, err error) {
	t.next("")
	t.rec.Code, t.rec.Took = code, t.mark.Sub(t.rec.Time)
	if err != nil {
		t.rec.Err = err
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		t.rec.Reason = refused.Reason
	}
}

// unrecorded is the outcome of what there is no record of, because of rerr. What was
// carried out is not told like what never left.
func (t *trail) unrecorded(rerr, err error) error {
	r := t.refuse(step.Record, "the audit log cannot be written", rerr)
	if r.Invoked = t.invoked(err); r.Invoked {
		r.Reason = "the call was carried out, and its result is withheld because the audit log cannot be written; see what it has done before you call again"
	}
	if _, refused := errors.AsType[*Refusal](err); r.Invoked && err != nil && !refused {
		r.Reason = "the call was sent and failed, perhaps after it was carried out, and the audit log cannot be written; see what it has done before you call again"
	}
	return errors.Join(r, err)
}

// invoked reports whether the upstream has had the call, which has come to err since. Of
// what a tool has carried out, that other call decides.
func (t *trail) invoked(err error) bool {
	if of, ok := errors.AsType[*RelayedError](err); ok {
		r, refused := errors.AsType[*Refusal](of)
		return !refused || r.Invoked
	}
	switch Code(err) {
	case "not_connected", "spawn_failed":
		return t.rec.Usage.Repeats > 0 // or else it never left
	}
	return t.step == step.Invoke || slices.ContainsFunc(t.rec.Steps, func(s step.Time) bool { return s.Step == step.Invoke })
}

// recordGranted keeps the record that the call is let pass.
func (t *trail) recordGranted(ctx context.Context) error {
	event := t.rec.Event
	t.rec.Event = Granted
	err := t.record(ctx, &t.rec)
	t.rec.Event = event // of how it ends
	if err != nil {
		return t.fail(ctx, "the audit log cannot be written", err)
	}
	return nil
}

// found writes down what was found in what came with the call, or in its result.
func (t *trail) found(all ...Finding) {
	t.rec.Findings = append(t.rec.Findings, all[:min(len(all), max(0, maxFindings-len(t.rec.Findings)))]...)
}

// record gives the record to the recorder. The end of the call's context does
// not end the record.
func (t *trail) record(ctx context.Context, r *Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked.Error(v)
		}
	}()
	return t.Recorder.Record(context.WithoutCancel(ctx), r)
}

// fail refuses the call at the step under way. If the caller has gone, that is
// the outcome, whatever the step says; and a panic at the upstream is the
// upstream's failure, not a refusal. A cause whose code is that of [step.Store] tells which step
// has failed, whichever was under way.
func (t *trail) fail(ctx context.Context, reason string, cause error) error {
	if cerr := ctx.Err(); cerr != nil {
		return fmt.Errorf("%q: %w at %s (%v)", t.rec.Call.Name, cerr, t.step, cause)
	}
	if t.step == step.Invoke {
		return fmt.Errorf("%q: %w", t.rec.Call.Name, cause)
	}
	if Code(cause) == unstored {
		return t.away(cause)
	}
	return t.refuse(t.step, t.sanitized(reason), cause)
}

// unstored is the code of errors of what gateways share, and of calls that are refused for them.
const unstored = "refused_" + string(step.Store)

// away refuses the call because what gateways share cannot be read or written.
func (t *trail) away(cause error) error {
	r := t.refuse(step.Store, "the database that the gateways share cannot be used now; try again later", cause)
	if r.Invoked = t.invoked(cause); r.Invoked {
		r.Reason = "the call was carried out, and its result is withheld because the database that the gateways share cannot be used now; see what it has done before you call again"
		return r
	}
	r.RetryAfter = time.Second
	return r
}

func (t *trail) refuse(s step.Step, reason string, cause error) *Refusal {
	return &Refusal{Step: s, Call: t.rec.Call.ID, Name: t.rec.Call.Name, Reason: reason, Err: cause}
}

// sanitized returns a reason for clients, which render it: it can quote names and values that a caller
// or a server chose.
func (t *trail) sanitized(reason string) (clean string) {
	defer func() {
		if recover() != nil {
			clean = "the call is refused, and the reason cannot be shown"
		}
	}()
	clean, _ = t.Sanitizer.Sanitize(Text{Text: reason})
	return clean
}

// caught is deferred, and makes a failure of a panic.
func (t *trail) caught(ctx context.Context, err *error) {
	v := recover()
	if v == nil {
		return
	}
	if t.step == step.Invoke && actions.IsPeerRequest(t.rec.Call.Action) { // the client's, and no refusal has that step
		t.step = step.ValidateOutput
	}
	*err = t.fail(ctx, "internal error", panicked.Error(v))
}
