package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/internal/limit"
	"github.com/wasmgate/wasmgate/internal/obligation"
	"github.com/wasmgate/wasmgate/internal/step"
)

// held is what a call has taken from limits. The zero held is nothing.
type held struct {
	release func(bytes int64)                           // nil: it holds nothing now
	pause   func() (resume func(context.Context) error) // of its place; nil if it keeps that
	paid    []obligation.Rate                           // those that the call has been charged for
}

// back gives back what is held, of a call that has used so many bytes.
func (h *held) back(bytes int64) {
	if release := h.release; release != nil {
		h.release, h.pause = nil, nil
		release(bytes)
	}
}

// take takes what the call does not hold yet of its place, and of the rates of the
// decision. If it fails, what was held still is.
func (w *way) take(ctx context.Context, q Query, rates []obligation.Rate, h held) (held, error) {
	var charges []Charge
	if h.release == nil {
		charges = append(charges, place(q))
	}
	for i := range rates {
		if !slices.ContainsFunc(h.paid, rates[i].Equal) {
			charges = append(charges, charge(&rates[i], q.Call, q.Tool))
		}
	}
	if len(charges) == 0 {
		return h, nil
	}
	w.next(step.Limit)
	if w.Limiter == nil {
		if rates != nil {
			return h, w.fail(ctx, "the policy sets a rate, and this gateway has nothing to keep it", nil)
		}
		return h, nil
	}
	release, pause, err := w.Limiter.Take(ctx, charges)
	if err != nil || release == nil {
		return h, w.overLimit(ctx, err)
	}
	if q.Tool.Relay {
		release = once(release)
	}
	for _, r := range rates {
		h.paid = joinRates(h.paid, r)
	}
	if pause != nil {
		h.pause = pause
	}
	if before := h.release; before != nil {
		h.release = func(bytes int64) { before(bytes); release(bytes) }
	} else {
		h.release = release
	}
	return h, nil
}

// once returns a release that may be called again, from anywhere.
func once(release func(bytes int64)) func(bytes int64) {
	var o sync.Once
	return func(bytes int64) { o.Do(func() { release(bytes) }) }
}

// place is what a call takes of the limits on calls at one time.
func place(q Query) Charge {
	on := limit.Concurrent
	switch {
	case q.Tool.Relay:
		on = limit.Relays // calls that wait for others must not hold the places that those need
	case q.Tool.Feature == FeatureAgent:
		on = limit.Agents
	}
	return Charge{
		Limit: on, Owner: q.Call.Who.Owner, N: 1,
		Session: q.Call.Session.ID, Server: q.Tool.Name.Server, Tool: q.Tool.named(),
	}
}

// overLimit refuses the call for the error of a limiter.
func (w *way) overLimit(ctx context.Context, err error) error {
	if over, ok := errors.AsType[*obligation.OverRate](err); ok && ctx.Err() == nil {
		r := w.refuse(step.Limit, over.Error(), nil)
		r.RetryAfter = over.After
		return r
	}
	if !errors.Is(err, limit.ErrBusy) {
		return w.fail(ctx, "over a limit", err)
	}
	w.step = step.Busy
	reason := "the gateway is busy"
	if b, ok := errors.AsType[*limit.Busy](err); ok {
		reason = b.What
	}
	return w.fail(ctx, reason+"; try again later", err)
}

// charge returns what a call takes from the rate. Parts of the limit's name are
// told apart by their length, for a client chooses some of them.
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
	return Charge{Limit: b.String(), Owner: owner, N: 1, Rate: r}
}
