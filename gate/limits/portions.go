package limits

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// SharedRates keeps the buckets of rates where several gateways take tokens from them.
type SharedRates interface {
	// Exchange puts tokens back into the bucket of a charge, which begins full, and takes others: as
	// many of those wanted as there are, and none unless there is one of each kind that the rate
	// limits. Back is negative where more was used than was taken. It returns what it took, and what
	// is left.
	Exchange(ctx context.Context, c gate.Charge, back, want Tokens) (took, left Tokens, err error)
}

// Tokens are those of one bucket.
type Tokens struct{ Calls, Bytes float64 }

// portionTime is after how long a gateway asks again for tokens that there were none of: others give
// back what they do not use.
const portionTime = time.Second

// portions are the tokens that this gateway has taken from shared rates. While they last, no call
// asks the database.
type portions struct {
	from SharedRates

	mu sync.Mutex
	at map[bucketKey]*portion
}

// A portion holds tokens of one bucket. It does not fill by itself.
type portion struct {
	users int // with portions.mu

	mu sync.Mutex // held while more is taken, so that calls share the answer
	bucket
	refused error // of calls that came before again
	again   time.Time
}

// with calls f with the portion of a charge, which it makes if there is none.
func (ps *portions) with(c gate.Charge, f func(*portion) error) error {
	k := bucketKey{c.Owner, c.Limit}
	ps.mu.Lock()
	p := ps.at[k]
	if p == nil {
		p = &portion{bucket: bucket{key: k, rate: *c.Rate}}
		ps.at[k] = p
	}
	p.users++
	ps.mu.Unlock()
	defer func() {
		ps.mu.Lock()
		p.users--
		ps.mu.Unlock()
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	return f(p)
}

func (ps *portions) take(ctx context.Context, charges []gate.Charge) ([]gate.Charge, error) {
	came := time.Now()
	var spent []gate.Charge
	for _, c := range charges {
		err := possible(*c.Rate)
		if err == nil {
			err = ps.with(c, func(p *portion) error { return p.take(ctx, ps.from, came) })
		}
		if err != nil {
			ps.giveBack(spent)
			return nil, err
		}
		spent = append(spent, c)
	}
	return spent, nil
}

// take takes a token of a call that came at a time.
func (p *portion) take(ctx context.Context, from SharedRates, came time.Time) error {
	if p.wait() > 0 {
		if came.Before(p.again) {
			return p.refused
		}
		left, err := p.exchange(ctx, from, Tokens{max(1, Burst(p.rate)/10), max(1, float64(p.rate.Bytes)/10)})
		if err != nil {
			p.refused, p.again = err, time.Now()
			return err
		}
		if p.wait() > 0 {
			empty := bucket{rate: p.rate, calls: left.Calls, bytes: left.Bytes}
			wait := max(time.Millisecond, empty.wait())
			p.refused, p.again = &obligation.OverRate{Rate: p.rate, After: wait}, time.Now().Add(min(wait, portionTime))
			return p.refused
		}
	}
	if p.rate.Calls > 0 {
		p.calls--
	}
	return nil
}

// exchange puts back what is left of the portion, and takes what is wanted.
func (p *portion) exchange(ctx context.Context, from SharedRates, want Tokens) (left Tokens, err error) {
	back := Tokens{p.calls, p.bytes}
	// After an error this may have been put back, and counts as if it was. What is owed counts twice.
	p.calls, p.bytes = min(p.calls, 0), min(p.bytes, 0)
	r := p.rate
	// The answer is for others, too, so that the end of this call does not end it.
	took, left, err := from.Exchange(context.WithoutCancel(ctx), gate.Charge{Limit: p.key.limit, Owner: p.key.owner, Rate: &r}, back, want)
	if err == nil {
		p.calls, p.bytes = took.Calls, took.Bytes
	}
	return left, err
}

func (ps *portions) giveBack(spent []gate.Charge) { ps.add(spent, 1, 0) }

func (ps *portions) spend(spent []gate.Charge, bytes int64) { ps.add(spent, 0, -float64(bytes)) }

func (ps *portions) add(spent []gate.Charge, calls, bytes float64) {
	for _, c := range spent {
		_ = ps.with(c, func(p *portion) error {
			if p.rate.Calls > 0 {
				p.calls += calls
			}
			if p.rate.Bytes > 0 {
				p.bytes += bytes
			}
			return nil
		})
	}
}

// returnAll puts back what is left of all portions, and what is owed.
func (ps *portions) returnAll(ctx context.Context) error {
	ps.mu.Lock()
	all := slices.Collect(maps.Values(ps.at))
	ps.mu.Unlock()
	for _, p := range all {
		err := ps.with(gate.Charge{Limit: p.key.limit, Owner: p.key.owner, Rate: &p.rate}, func(p *portion) error {
			if p.calls == 0 && p.bytes == 0 {
				return nil
			}
			_, err := p.exchange(ctx, ps.from, Tokens{})
			return err
		})
		if err != nil {
			return err
		}
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	maps.DeleteFunc(ps.at, func(_ bucketKey, p *portion) bool { return p.users == 0 && p.calls == 0 && p.bytes == 0 })
	return nil
}
