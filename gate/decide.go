package gate

import (
	"context"
	"errors"
	"strings"
)

// maxDecisions bounds how often a call is decided again because its session has
// changed meanwhile.
const maxDecisions = 8

// authorize decides on the call, in the state that its session has now.
func (w *way) authorize(ctx context.Context, q *Query) error {
	var err error
	if q.Session, err = w.Sessions.View(ctx, q.Call.Session); err != nil {
		return w.fail(ctx, "the session's state cannot be read", err)
	}
	if w.parent != nil { // the view may be older than what the call was admitted with
		q.Session.Labels = q.Session.Labels.Join(w.parent.session.Labels)
		q.Session.Top = q.Session.Top || w.parent.session.Top
	}
	return w.decide(ctx, q)
}

// decide has the authorizer decide on the call in the session's state that q has, and
// takes the decision on: the call goes on as the decision leaves it.
func (w *way) decide(ctx context.Context, q *Query) error {
	w.rec.Session = q.Session
	w.rec.Decision = Decision{}
	d, err := w.Authorizer.Authorize(ctx, w.seen(*q))
	if err != nil {
		return w.fail(ctx, "the policy cannot be evaluated", err)
	}
	if w.parent == nil {
		d = w.wary(d).Asked()
		w.rec.Call = sent(q.Call, d.Obligations)
	}
	w.rec.Decision = d
	if w.consent != "" && !w.consented(*q) { // what was approved is another call by now
		w.consent, w.rec.Approval = "", ApprovalRecord{}
		return w.decide(ctx, q)
	}
	if d.Effect != Allow && d.Effect != Ask {
		return w.denied(d)
	}
	if err := w.oblige(d.Obligations); err != nil {
		return w.fail(ctx, "the policy demands what this gateway cannot do", err)
	}
	return nil
}

// denied refuses the call as the policy does.
func (w *way) denied(d Decision) *Refusal {
	reason := strings.Join(d.Reasons, "; ")
	if reason == "" {
		reason = "not allowed by policy"
	}
	r := w.refuse(StepAuthorize, reason, nil)
	if d.Hidden {
		r.Reason, r.Err = unknown(w.rec.Call.Action), errors.New(reason)
	}
	r.Hidden, r.Remedy = d.Hidden, d.Remedy
	return r
}

// oblige takes on the obligations of a decision.
func (w *way) oblige(obligations []Obligation) (err error) {
	if w.parent != nil {
		w.rec.Full = w.parent.duty.full
		return w.parent.duty.holds(obligations)
	}
	if w.duty, err = noDuty.with(obligations); err != nil {
		return err
	}
	w.rec.Full = w.full
	if w.narrowed && !w.rec.Tool.Sandboxed {
		return errors.New("only a sandboxed tool can be narrowed")
	}
	return nil
}
