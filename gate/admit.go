package gate

import (
	"context"
	"errors"
)

// permit makes the proof that the call may reach the upstream. A person is asked
// before the call takes its place among those under way; and if what its session
// has read makes the policy ask only then, the call gives the place back first.
func (w *way) permit(ctx context.Context, q Query) (Permit, Release, error) {
	for range maxDecisions {
		if err := w.ask(ctx, &q); err != nil {
			return Permit{}, nil, err
		}
		p, release, err := w.grant(ctx, &q)
		if err != errUnasked {
			return p, release, err
		}
	}
	return Permit{}, nil, w.fail(ctx, "the session changed with every decision on the call; call again", errUnasked)
}

// grant takes the call's place, and makes its permit and the record of that.
// Nothing is refused after it but what the upstream's answer gives reason for. The
// error is errUnasked if the policy has come to ask a person.
func (w *way) grant(ctx context.Context, q *Query) (Permit, Release, error) {
	release, err := w.take(ctx, *q, Charge{
		Limit: Concurrent, Owner: q.Call.Who.Owner, N: 1,
		Session: q.Call.Session.ID, Server: q.Tool.Name.Server, Tool: q.Tool.Name.String(),
	})
	if err != nil {
		return Permit{}, nil, err
	}
	granted := false
	defer func() {
		if !granted {
			release(0)
		}
	}()

	if err := w.admit(ctx, q); err != nil {
		return Permit{}, nil, err
	}
	if release, err = w.settle(ctx, *q, release); err != nil {
		return Permit{}, nil, err
	}
	w.next(StepRecord)
	if ctx.Err() != nil {
		return Permit{}, nil, w.fail(ctx, "", nil)
	}
	if err := w.recordGranted(ctx); err != nil {
		return Permit{}, nil, err
	}
	if q.Call.Granted != nil {
		q.Call.Granted()
	}
	granted = true
	admitted := q.Session
	admitted.Labels = w.rec.After
	return Permit{&permitted{call: w.rec.Call, tool: q.Tool, parts: w.Parts, session: admitted, duty: w.duty, pause: w.pause, asking: w.rec.Call.asking()}}, release, nil
}

// admit brings the call into the order of its session. If what the session has
// read has grown since the decision, the call is decided again.
func (w *way) admit(ctx context.Context, q *Query) error {
	w.next(StepAuthorize)
	for again := 0; ; again++ {
		now, err := w.Sessions.Admit(ctx, q.Session, q.Call, w.adds(q.Tool))
		if err == nil {
			w.rec.After = now.Labels
			return w.vouch(ctx, q)
		}
		if !errors.Is(err, ErrStale) {
			return w.fail(ctx, "the session's state cannot be kept", err)
		}
		if again == maxDecisions {
			return w.fail(ctx, "the session changed with every decision on the call; call again", err)
		}
		if !now.Top && !now.Labels.Cover(q.Session.Labels) {
			return w.fail(ctx, "the session's state cannot be kept", errors.New("the session has lost labels"))
		}
		q.Session = now
		if err := w.decide(ctx, q); err != nil {
			return err
		}
		if w.asks() {
			return errUnasked
		}
	}
}
