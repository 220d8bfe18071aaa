package gate

import (
	"context"

	"github.com/wasmgate/wasmgate/gate/step"
)

// Do carries out a call, or refuses it. The error is a [*Refusal], an error of
// the upstream, or wraps ctx.Err() if ctx ended first; [Code] names it. A tool
// that reports its own failure is no error: see [Result.IsError].
func (g *Gate) Do(ctx context.Context, c Call) (Result, error) { return g.do(ctx, c, false) }

// do is Do; relayed says that the call was made by [Permit.Relay].
func (g *Gate) do(ctx context.Context, c Call, relayed bool) (Result, error) {
	if c.ID == "" {
		c.ID = NewID()
	}
	if c.Args.IsZero() {
		c.Args = emptyObject
	}
	p := g.parts.Load()
	if p == nil {
		return Result{}, &Refusal{Step: step.Record, Call: c.ID, Name: c.Name, Reason: "the gate was made without its parts; use gate.New"}
	}
	w := &way{gate: g, relayed: relayed}
	w.begin(p, Done, &c)
	res, err := w.pass(ctx, &c)
	if err == nil {
		w.rec.Result = res.Doc
	}
	if err := w.end(ctx, outcome(res, err), err); err != nil {
		return Result{}, err
	}
	return res, nil
}

// pass takes the call from step to step. Whatever goes wrong, a panic included,
// is an error.
func (w *way) pass(ctx context.Context, c *Call) (_ Result, err error) {
	defer w.caught(ctx, &err)

	if err := w.parse(ctx, c); err != nil {
		return Result{}, err
	}
	tool, err := w.lookup(ctx, c)
	if err != nil {
		return Result{}, err
	}
	var used int64 // bytes
	defer func() { w.held.back(used) }()
	if err := w.enter(ctx, c, tool); err != nil {
		return Result{}, err
	}
	q, b, err := w.arrive(ctx, c, tool)
	if err != nil {
		return Result{}, err
	}
	if err := w.open(ctx, q); err != nil {
		return Result{}, err
	}

	var r ruling
	valid := false
	for range maxDecisions {
		if err := w.enter(ctx, c, q.Tool); err != nil {
			return Result{}, err
		}
		consent := r.consent
		r, err = w.decide(ctx, q, b, consent)
		if w.Renew != nil && (err != nil || r.asks()) {
			if now, changed := w.Renew(ctx, q.Session); changed {
				q.Session, r.consent = now, consent
				followed(w, now)
				continue
			}
		}
		if err != nil {
			return Result{}, err
		}
		if err := w.validateInput(ctx, q, r.sent, valid); err != nil {
			return Result{}, err
		}
		valid = true
		if r.asks() {
			w.held.back(0)
			if r.consent, err = w.ask(ctx, q, r, consent != ""); err != nil {
				return Result{}, err
			}
			if q, err = w.resume(ctx, q); err != nil {
				return Result{}, err
			}
			continue
		}
		if err := w.take(ctx, q, r.duty.rates); err != nil {
			return Result{}, err
		}
		now, admitted, err := w.admit(ctx, q, r.adds)
		if err != nil {
			return Result{}, err
		}
		if !admitted {
			q.Session = now
			followed(w, now)
			continue
		}
		p, err := w.grant(ctx, q, now, r)
		if err != nil {
			return Result{}, err
		}
		used = int64(len(r.sent.Args.Raw()))
		res, err := w.invoke(ctx, p)
		used += int64(len(res.Doc.Raw()))
		if err != nil {
			return Result{}, err
		}
		return w.answer(ctx, p.of, res)
	}
	return Result{}, w.fail(ctx, tooManyDecisions, ErrStale)
}

// arrive returns what is decided on: the call without the secrets that are not to go on,
// in the state that its session has now.
func (w *way) arrive(ctx context.Context, c *Call, t *Tool) (q Query, b searched, err error) {
	w.next(step.Authorize)
	if !c.fromApp(t) { // a page's words are not its user's
		if err := w.readPrompt(ctx, c); err != nil {
			return q, b, err
		}
	}
	if err := w.coerce(ctx, c, t); err != nil {
		return q, b, err
	}
	g := w.guard(t)
	if w.Returned != nil {
		g.returned = func(text string) bool { return w.Returned.Knows(c.Session, t.Name.Server, text) }
	}
	b, err = g.call(c)
	w.found(b.found...)
	if err != nil {
		return q, b, w.fail(ctx, "the arguments cannot be searched for secrets", err)
	}
	q = Query{Call: c, Tool: t}
	q.Session, err = w.view(ctx, c)
	followed(w, q.Session)
	return q, b, err
}

// followed has the call decided on by the parts of now, if other gateways may have changed the policy before
// the state of its session was read.
func followed(w *way, s Session) {
	if s.Generation > 0 {
		w.Parts = w.gate.parts.Load()
		w.rec.Snapshot = w.Snapshot
	}
}

// answer returns the result of a permitted call as its client gets it.
func (w *way) answer(ctx context.Context, p *permitted, res Result) (_ Result, err error) {
	if p.passedOn(res) && (res.InputRequired || !p.duty.onResult()) {
		res.Labels = res.Labels.Join(p.adds)
		return res, nil
	}
	if err := w.work(ctx, len(res.Doc.Raw())); err != nil {
		return Result{}, err
	}
	if res.InputRequired {
		return w.askMore(ctx, p, res)
	}
	if err := w.validateOutput(ctx, p, res); err != nil {
		return Result{}, err
	}
	if res.Doc, err = w.clean(ctx, p, res); err != nil {
		return Result{}, err
	}
	if err := w.learn(ctx, p, res.Doc); err != nil {
		return Result{}, err
	}
	if p.relay == nil { // the labels of the other call stay, and what it returned is known
		if w.Returned != nil && p.tool.Page == nil {
			w.Returned.Learn(p.call.Session, p.tool.Name.Server, res.Doc)
		}
		res.Labels = nil
	}
	res.Labels = res.Labels.Join(p.adds)
	return res, nil
}
