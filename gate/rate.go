package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// take takes charges, and what the call owes to the rates of its decision.
func (w *way) take(ctx context.Context, q Query, charges ...Charge) (Release, error) {
	w.next(StepLimit)
	rates := w.rates
	for i := range rates {
		if !slices.ContainsFunc(w.paid, rates[i].equal) {
			charges = append(charges, rates[i].charge(q.Call, q.Tool))
		}
	}
	if w.Limiter == nil {
		if rates != nil {
			return nil, w.fail(ctx, "the policy sets a rate, and this gateway has nothing to keep it", nil)
		}
		return func(int64) {}, nil
	}
	release, pause, err := takeFrom(ctx, w.Limiter, charges)
	if over, ok := errors.AsType[*OverRate](err); ok && ctx.Err() == nil {
		r := w.refuse(StepLimit, over.Error(), nil)
		r.RetryAfter = over.After
		return nil, r
	}
	if errors.Is(err, ErrBusy) {
		w.step = StepBusy
		reason := "the gateway is busy"
		if b, ok := errors.AsType[*Busy](err); ok {
			reason = b.What
		}
		return nil, w.fail(ctx, reason+"; try again later", err)
	}
	if err != nil || release == nil {
		return nil, w.fail(ctx, "over a limit", err)
	}
	for _, r := range rates {
		w.paid = joinRates(w.paid, r)
	}
	if pause != nil {
		w.pause = pause
	}
	return release, nil
}

// settle completes a call that has been admitted. If it was decided again for that,
// the decision may name more rates, and other arguments to take out.
func (w *way) settle(ctx context.Context, q Query, release Release) (Release, error) {
	if err := w.validateSent(ctx, q.Call); err != nil {
		return release, err
	}
	for _, r := range w.rates {
		if slices.ContainsFunc(w.paid, r.equal) {
			continue
		}
		more, err := w.take(ctx, q)
		if err != nil {
			return release, err
		}
		return func(bytes int64) { release(bytes); more(bytes) }, nil
	}
	return release, nil
}
