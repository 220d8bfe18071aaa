package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/limit"
)

// LimitOptions configure [Limits].
type LimitOptions struct {
	// Concurrent is how many calls may be at upstreams at one time, over the
	// whole gateway. Zero or less means 64.
	Concurrent int
	// Session is how many of them may be of one session. Zero or less sets no limit
	// of its own.
	Session int
	// Server and Tool say how many of them may be at a server, and of a tool, by its
	// qualified name. Zero or less, like nil, sets no limit of its own. They are
	// called concurrently, and often.
	Server, Tool func(name string) int
	// Wait is how long a call waits for a place. Zero means 1 s; with a negative
	// one no call waits.
	Wait time.Duration
	// Queue is how many calls wait at most. Zero means four times Concurrent, at most
	// 4096; with a negative one no call waits.
	Queue int
	// Buckets is how many buckets of rates are kept: see [Limits]. Zero or less
	// means 65,536; one takes some 300 bytes.
	Buckets int
}

// maxQueue bounds what a place that becomes free looks through.
const maxQueue = 4096

// Limits bounds how many calls run at once, and how many in a time. For a place calls
// wait in a queue, in which sessions take turns: one that makes ten thousand calls at
// once gets the places that others leave, and when the queue is full it is its last
// call that is refused for another session's. For a rate nobody waits. Use it from
// several goroutines.
//
// Calls of tools that carry out others ([gate.Relays]) have places of their own, four
// times as many, of which one principal gets half: they wait for the calls that they
// carry out, and must not hold the places of those. Session and Tool hold for them too.
//
// A bucket of a rate that has filled again is as good as none, and makes room for
// another. If all are in use, a call that needs a new one is refused: to forget
// one would be to let its owner begin anew.
type Limits struct {
	o       LimitOptions // but for Concurrent and Session, which can change
	session atomic.Int64
	rates   *buckets
	calls   places
	relays  places
	agents  places
	away    places // of calls that have given their place back for a while
}

// timesMore is how many times more relays there are than other calls, and calls that
// wait for their clients: both take memory, and next to no work.
const timesMore = 4

func more(concurrent int) int64 {
	return timesMore * min(int64(concurrent), math.MaxInt64/timesMore)
}

// usualConcurrent is how many calls may be at upstreams at one time unless somebody says
// otherwise.
const usualConcurrent = 64

var _ gate.Limiter = (*Limits)(nil)

// NewLimits returns Limits of which nothing is taken.
func NewLimits(o LimitOptions) *Limits {
	if o.Concurrent <= 0 {
		o.Concurrent = usualConcurrent
	}
	if o.Wait == 0 {
		o.Wait = time.Second
	}
	if o.Queue == 0 {
		o.Queue = int(min(more(o.Concurrent), maxQueue))
	}
	if o.Buckets <= 0 {
		o.Buckets = 1 << 16
	}
	l := &Limits{o: o, rates: newBuckets(o.Buckets)}
	l.session.Store(int64(o.Session))
	l.calls.init(int64(o.Concurrent), o.Queue)
	l.relays.init(more(o.Concurrent), o.Queue)
	l.agents.init(more(o.Concurrent), o.Queue)
	l.away.init(more(o.Concurrent), 0)
	return l
}

// Take takes places for calls, and tokens of rates. The limits beside rates are
// [gate.Concurrent], [gate.Relays] and [gate.Agents], of which a call takes one; a charge to another is
// an error, since nobody would keep it.
// The error is a [*limit.Busy] if there was no place in time, and wraps ctx.Err() if
// ctx ended first; it is a [*gate.OverRate] if a rate is used up. A Release that is
// called again does nothing.
//
// A call that is away keeps its places at its server and of its tool, which go on with it.
func (l *Limits) Take(ctx context.Context, charges []gate.Charge) (func(int64), func() func(context.Context) error, error) {
	d, rated, err := l.demand(charges)
	if err != nil {
		return nil, nil, err
	}
	var spent []gate.Charge
	if rated {
		if spent, err = l.rates.take(charges); err != nil {
			return nil, nil, err
		}
	}
	h := &holding{limits: l, demand: d, has: d.n > 0, spent: spent}
	if h.has {
		if err := d.from.take(ctx, d, l.o.Wait); err != nil {
			l.rates.giveBack(spent)
			return nil, nil, err
		}
	}
	if d.from != &l.calls {
		return h.release, nil, nil
	}
	return h.release, h.pause, nil
}

// demand adds up the places that charges take, and reports whether there are rates
// among them.
func (l *Limits) demand(charges []gate.Charge) (d demand, rated bool, err error) {
	for _, c := range charges {
		if c.Rate != nil {
			rated = true
			continue
		}
		from := l.placesOf(c.Limit)
		if from == nil {
			return demand{}, false, fmt.Errorf("there is no limit %q", c.Limit)
		}
		if d.from != nil && d.from != from {
			return demand{}, false, errors.New("a call takes places of one limit, not of two")
		}
		most := from.size()
		if c.N <= 0 || c.N > most-d.n {
			return demand{}, false, fmt.Errorf("limit %s: a charge of %d can never be met; the limit is %d", c.Limit, c.N, most)
		}
		d.from = from
		d.n += c.N
		d.who = room{of: ofSession, Owner: c.Owner, name: c.Session}
		d.within(d.who, int(l.session.Load()), c.N)
		d.within(room{of: ofTool, name: c.Tool}, limitOf(l.o.Tool, c.Tool), c.N)
		if from == &l.relays {
			d.what = ofRelays
			d.within(room{of: ofPrincipal, Owner: c.Owner}, int(max(1, most/2)), c.N)
		} else {
			d.within(room{of: ofServer, name: c.Server}, limitOf(l.o.Server, c.Server), c.N)
		}
	}
	for _, s := range d.shares {
		if s.n > s.most {
			return demand{}, false, errors.New("a charge can never be met: " + busy(s.of, d.what, s.most).What)
		}
	}
	return d, rated, nil
}

// placesOf returns the places that a limit is on; nil if there is no such limit.
func (l *Limits) placesOf(name string) *places {
	switch name {
	case limit.Concurrent:
		return &l.calls
	case limit.Relays:
		return &l.relays
	case limit.Agents:
		return &l.agents
	default:
		return nil
	}
}

func limitOf(limit func(string) int, name string) int {
	if limit == nil {
		return 0
	}
	return limit(name)
}
