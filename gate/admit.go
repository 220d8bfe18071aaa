package gate

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/gate/step"
)

// admit brings the call into the order of its session, and returns the state in which it
// was admitted. If the session has read more since the call was decided on, the call is
// not admitted, and has to be decided on again in the state that is returned.
func (w *way) admit(ctx context.Context, q Query, adds Labels) (now Session, admitted bool, err error) {
	w.next(step.Authorize)
	now, err = w.Sessions.Admit(ctx, q.Session, q.Call, adds)
	switch {
	case err == nil:
		w.rec.After = now.Labels
		return now, true, nil
	case !errors.Is(err, ErrStale):
		return Session{}, false, w.fail(ctx, "the session's state cannot be stored", err)
	case !now.Top && !now.Labels.Cover(q.Session.Labels):
		return Session{}, false, w.fail(ctx, "the session's state cannot be stored", errors.New("the labels of the session were lost"))
	}
	return now, false, nil
}

// grant makes the permit of a call that was admitted, and the record of that. Nothing is
// refused after it but what the upstream's answer gives reason for. Now is the state in
// which the call was admitted, q has the one in which it was decided on.
func (w *way) grant(ctx context.Context, q Query, now Session, r ruling) (Permit, error) {
	if err := w.vouch(ctx, q, r.sent); err != nil {
		return Permit{}, err
	}
	w.next(step.Record)
	if ctx.Err() != nil {
		return Permit{}, w.fail(ctx, "", nil)
	}
	if err := w.recordGranted(ctx); err != nil {
		return Permit{}, err
	}
	p := &permitted{call: r.sent, tool: q.Tool, parts: w.Parts, session: q.Session, duty: r.duty, adds: r.adds, slot: w.held.slot}
	p.session.Labels = now.Labels
	if q.Tool.Relay { // the caller waits for the other call, and servers ask on behalf of that one
		p.relay = &relaying{gate: w.gate}
		return Permit{p}, nil
	}
	q.Call.client().Granted()
	p.asking = r.sent.asking()
	return Permit{p}, nil
}

// view returns the state that the session of a call has.
func (w *way) view(ctx context.Context, c *Call) (Session, error) {
	s, err := w.Sessions.View(ctx, c.Session)
	if err != nil {
		return Session{}, w.fail(ctx, "the session's state cannot be read", err)
	}
	return s, nil
}
