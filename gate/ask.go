package gate

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
)

// ask has a person approve the call, and returns the binding of what they have approved.
// The call holds nothing meanwhile that others wait for. Approved says that a person has
// approved it before, and the policy asks all the same.
func (w *way) ask(ctx context.Context, q Query, r ruling, approved bool) (consent string, err error) {
	w.next(step.Approve)
	switch {
	case approved:
		return "", w.fail(ctx, "the policy has changed since the call was approved; call again", nil)
	case !q.Tool.Feature.called():
		return "", w.fail(ctx, "this needs approval, and people can be asked only about calls of tools", nil)
	case w.Approver == nil:
		return "", w.fail(ctx, "this call needs approval, and this gateway has no way to ask a person", nil)
	}
	asked := w.asked(q, r)
	a, err := w.Approver.Approve(ctx, asked)
	if err == nil && a.ID == "" {
		err = errors.New("the function Approve returned no approval")
	}
	if err != nil {
		return "", w.unapproved(ctx, err)
	}
	if err := w.approveDestinations(ctx, q, a); err != nil {
		return "", w.fail(ctx, "the session's state cannot be stored", err)
	}
	consent = asked.Binding()
	w.rec.Approval = ApprovalRecord{Approval: a, Binding: consent}
	return consent, nil
}

// asked is the question about a call, with where its values were met.
func (w *way) asked(q Query, r ruling) Question {
	asked := r.question(q, w.Snapshot)
	if w.TrackValues {
		asked.Destinations, asked.Origins = w.unnamed(q)
		asked.BesideOf, asked.Beside = provenance.Beside(w.known(q), asked.Destinations)
	}
	return asked
}

// unapproved refuses the call for want of an approval.
func (w *way) unapproved(ctx context.Context, err error) error {
	if p, ok := errors.AsType[*Pending](err); ok && ctx.Err() == nil {
		w.rec.Approval.ID, w.rec.Decision.Remedy = p.ID, p.Remedy
		r := w.refuse(step.Approve, p.Error(), p)
		r.Remedy = p.Remedy
		return r
	}
	if n, ok := errors.AsType[*NotApproved](err); ok {
		return w.fail(ctx, n.Reason, n)
	}
	return w.fail(ctx, "this call needs approval, and no person can be asked now", err)
}

// resume returns what an approved call is now: while it waited the operator may have
// changed the parts, the server its tool, and the session may have read more.
func (w *way) resume(ctx context.Context, q Query) (Query, error) {
	w.Parts = w.gate.parts.Load()
	w.rec.Snapshot = w.Snapshot
	tool, err := w.find(ctx, q.Call)
	if err != nil || tool.Digest != q.Tool.Digest || tool.ModuleDigest != q.Tool.ModuleDigest || tool.Name != q.Tool.Name {
		return q, w.fail(ctx, "the tool has changed since the call was approved; call again", err)
	}
	q.Tool, w.rec.Tool = tool, tool
	if err := w.pinned(ctx, q.Call, tool); err != nil {
		return q, err
	}
	w.next(step.Authorize)
	q.Session, err = w.view(ctx, q.Call)
	return q, err
}
