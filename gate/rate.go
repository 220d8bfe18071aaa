package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Rate is the obligation to stay within so many calls, so many bytes, or both,
// in a time. Calls and bytes are counted apart, each by a bucket of tokens that
// fills at an even pace: a call takes one token, and goes only if there is one. Of
// bytes, those of the arguments and the result, a call needs that some are left;
// what it took is known and taken only afterwards, so that the next waits for it.
//
// Rates that are equal in all fields share their buckets.
type Rate struct {
	// Name tells rates apart that are equal otherwise; may be empty.
	Name string
	// Key says for whom or what calls are counted apart, sorted, each once. Without
	// any of them all calls of a tenant are counted together.
	Key   []RateKey
	Calls int64 // in Per; zero sets no limit
	Bytes int64 // in Per; zero sets no limit
	Per   time.Duration
	// Burst is how many calls can be made at once after a rest. Zero means Calls.
	Burst int64
}

func (Rate) obligation() {}

// A RateKey is what a [Rate] counts calls apart for.
type RateKey string

// The keys of rates.
const (
	ByPrincipal RateKey = "principal"
	BySession   RateKey = "session" // of the principal
	ByServer    RateKey = "server"
	ByTool      RateKey = "tool"
)

// RateKeys returns all keys of rates.
func RateKeys() []RateKey { return []RateKey{ByPrincipal, ByServer, BySession, ByTool} }

// String is as one would say it: "60 calls and 1000 bytes in 1m0s".
func (r Rate) String() string {
	var what []string
	switch {
	case r.Calls == 1:
		what = append(what, "1 call")
	case r.Calls > 1:
		what = append(what, fmt.Sprintf("%d calls", r.Calls))
	}
	if r.Bytes > 0 {
		what = append(what, fmt.Sprintf("%d bytes", r.Bytes))
	}
	return strings.Join(what, " and ") + " in " + r.Per.String()
}

// maxRates bounds the rates of one call; each is a look into a table.
const maxRates = 64

// charge returns what a call takes from the rate. Parts of the limit's name are
// told apart by their length, for a client chooses some of them.
func (r *Rate) charge(c *Call, t *Tool) Charge {
	owner := Owner{Tenant: c.Who.Tenant}
	var b strings.Builder
	fmt.Fprintf(&b, "rate %d %d %d %d %d:%s", r.Calls, r.Bytes, r.Per, r.Burst, len(r.Name), r.Name)
	for _, k := range r.Key {
		value := ""
		switch k {
		case ByPrincipal:
			owner = c.Who.Owner
		case BySession:
			owner, value = c.Who.Owner, c.Session.ID
		case ByServer:
			value = t.Name.Server
		case ByTool:
			value = t.Name.String()
		}
		fmt.Fprintf(&b, " %s %d:%s", k, len(value), value)
	}
	return Charge{Limit: b.String(), Owner: owner, N: 1, Rate: r}
}

// equal reports whether two rates are one.
func (r Rate) equal(s Rate) bool {
	return r.Name == s.Name && r.Calls == s.Calls && r.Bytes == s.Bytes && r.Per == s.Per && r.Burst == s.Burst && slices.Equal(r.Key, s.Key)
}

// joinRates returns the rates with r, if it is not one of them.
func joinRates(rates []Rate, r Rate) []Rate {
	if slices.ContainsFunc(rates, r.equal) {
		return rates
	}
	return append(slices.Clip(rates), r)
}

// An OverRate says that a rate is used up. It is an error.
type OverRate struct {
	Rate Rate
	// After is when it is worth trying again: before, the call would be refused.
	After time.Duration
}

// Error is what a client is told.
func (e *OverRate) Error() string {
	return fmt.Sprintf("over the limit of %s; try again in %s", e.Rate, e.After.Round(time.Millisecond))
}

// held is what a call has taken from limits. The zero held is nothing.
type held struct {
	release Release // nil: it holds nothing now
	pause   Pause   // of its place; nil if it keeps that
	paid    []Rate  // those that the call has been charged for
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
func (w *way) take(ctx context.Context, q Query, rates []Rate, h held) (held, error) {
	var charges []Charge
	if h.release == nil {
		charges = append(charges, place(q))
	}
	for i := range rates {
		if !slices.ContainsFunc(h.paid, rates[i].equal) {
			charges = append(charges, rates[i].charge(q.Call, q.Tool))
		}
	}
	if len(charges) == 0 {
		return h, nil
	}
	w.next(StepLimit)
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
		release = release.once()
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
func (r Release) once() Release {
	var o sync.Once
	return func(bytes int64) { o.Do(func() { r(bytes) }) }
}

// place is what a call takes of the limits on calls at one time.
func place(q Query) Charge {
	limit := Concurrent
	switch {
	case q.Tool.Relay:
		limit = Relays // calls that wait for others must not hold the places that those need
	case q.Tool.Feature == FeatureAgent:
		limit = Agents
	}
	return Charge{
		Limit: limit, Owner: q.Call.Who.Owner, N: 1,
		Session: q.Call.Session.ID, Server: q.Tool.Name.Server, Tool: q.Tool.Name.String(),
	}
}

// overLimit refuses the call for the error of a limiter.
func (w *way) overLimit(ctx context.Context, err error) error {
	if over, ok := errors.AsType[*OverRate](err); ok && ctx.Err() == nil {
		r := w.refuse(StepLimit, over.Error(), nil)
		r.RetryAfter = over.After
		return r
	}
	if !errors.Is(err, ErrBusy) {
		return w.fail(ctx, "over a limit", err)
	}
	w.step = StepBusy
	reason := "the gateway is busy"
	if b, ok := errors.AsType[*Busy](err); ok {
		reason = b.What
	}
	return w.fail(ctx, reason+"; try again later", err)
}
