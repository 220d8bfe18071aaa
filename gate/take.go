package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/step"
)

// large is from how many bytes on arguments and results wait for their turn to be worked on.
const large = 64 << 10

// enter takes a slot, if the call has none, before work is done for it.
func (w *way) enter(ctx context.Context, c *Call, t *Tool) error {
	if w.Limiter == nil {
		return nil
	}
	if w.held.slot == nil {
		w.next(step.Limit)
		slot, err := w.Limiter.Enter(ctx, entry(c, t))
		if err != nil || slot == nil {
			return w.busy(ctx, c, t, err)
		}
		w.held.slot = slot
	}
	return w.work(ctx, len(c.Args.Raw())+len(c.Brought.Responses.Raw()))
}

// busy refuses a call that gets no slot. Nothing has been decided on it yet, so a caller that may
// not know of the tool is not told that it exists.
func (w *way) busy(ctx context.Context, c *Call, t *Tool, err error) error {
	err = w.overLimit(ctx, err)
	if r, ok := errors.AsType[*Refusal](err); ok && !w.mayKnow(ctx, c, t) {
		r.Reason, r.Hidden = unknown(c.Action), true
	}
	return err
}

// work waits until it is the call's turn to be worked on, if it has many bytes.
func (w *way) work(ctx context.Context, bytes int) error {
	if bytes < large || w.held.slot == nil {
		return nil
	}
	if err := w.held.slot.Work(ctx, bytes); err != nil {
		return w.fail(ctx, "over a limit", err)
	}
	return nil
}

// take takes what the call does not hold yet of its server and its tool, and of the rates of the
// decision.
func (w *way) take(ctx context.Context, q Query, rates []obligation.Rate) error {
	h := &w.held
	if h.slot == nil {
		if rates != nil {
			w.next(step.Limit)
			return w.fail(ctx, "the policy sets a rate, but this gateway has no limiter to count calls", nil)
		}
		return nil
	}
	w.next(step.Limit)
	if err := h.slot.Rest(ctx); err != nil {
		return w.overLimit(ctx, err)
	}
	need := Charges{Server: q.Tool.Name.Server, Tool: q.Tool.named(), Again: h.reached}
	for i := range rates {
		if !slices.ContainsFunc(h.paid, rates[i].Equal) {
			need.Rates = append(need.Rates, charge(&rates[i], q.Call, q.Tool))
		}
	}
	if err := h.slot.Charge(ctx, need); err != nil {
		return w.overLimit(ctx, err)
	}
	h.reached = true
	for _, r := range rates {
		h.paid = joinRates(h.paid, r)
	}
	return nil
}

// entry is what a call takes of the limits on calls at one time.
func entry(c *Call, t *Tool) Entry {
	on := LimitConcurrent
	switch {
	case t.Relay:
		on = LimitRelays // calls that wait for others must not hold the slots that those need
	case t.Feature == FeatureAgent:
		on = LimitAgents
	}
	return Entry{Limit: on, Caller: c.Caller(), Session: c.Session}
}

// overLimit refuses the call for the error of a limiter.
func (w *way) overLimit(ctx context.Context, err error) error {
	if over, ok := errors.AsType[*obligation.OverRate](err); ok && ctx.Err() == nil {
		r := w.refuse(step.Limit, over.Error(), nil)
		r.RetryAfter = over.After
		return r
	}
	if !errors.Is(err, ErrBusy) {
		return w.fail(ctx, "over a limit", err)
	}
	w.step = step.Busy
	reason := "the gateway is busy"
	if b, ok := errors.AsType[*Busy](err); ok {
		reason = b.What
	}
	return w.fail(ctx, reason+"; try again later", err)
}

// charge returns what a call takes from the rate. The parts of the limit's name are separated by
// their lengths, because a client chooses some of them.
func charge(r *obligation.Rate, c *Call, t *Tool) Charge {
	owner := Owner{Tenant: c.Who.Tenant}
	var b strings.Builder
	fmt.Fprintf(&b, "rate %d %d %d %d %d:%s", r.Calls, r.Bytes, r.Per, r.Burst, len(r.Name), r.Name)
	for _, k := range r.Key {
		value := ""
		switch k {
		case obligation.ByPrincipal:
			owner = c.Who.Owner
		case obligation.BySession:
			owner, value = c.Who.Owner, c.Session.ID
		case obligation.ByServer:
			value = t.Name.Server
		case obligation.ByTool:
			value = t.Name.String()
		}
		fmt.Fprintf(&b, " %s %d:%s", k, len(value), value)
	}
	return Charge{Limit: b.String(), Owner: owner, Rate: r}
}
