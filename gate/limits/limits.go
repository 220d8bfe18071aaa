package limits

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
)

// Options configure [Limits].
type Options struct {
	// Concurrent is how many calls may be under way at one time, over the
	// whole gateway. Zero or less means 64.
	Concurrent int
	// Session is how many of them may be of one session. Zero or less sets no limit
	// of its own.
	Session int
	// Server and Tool say how many of them may be at a server, and of a tool, by its
	// qualified name. Zero or less, like nil, sets no limit of its own. They are
	// called concurrently, and often.
	Server, Tool func(name string) int
	// Paused says why no new call goes to a server now, "" if calls do. Nil pauses none.
	Paused func(server string) string
	// Wait is how long a call waits for a slot. Zero means 1 s; with a negative
	// one no call waits.
	Wait time.Duration
	// Queue is how many calls wait at most. Zero means four times Concurrent, at most
	// 4096; with a negative one no call waits.
	Queue int
	// Buckets is how many buckets of rates are kept: see [Limits]. Zero or less
	// means 65,536; one takes some 300 bytes.
	Buckets int
	// Rates are those that several gateways count together; nil counts the calls of this one.
	Rates SharedRates
}

// maxQueue bounds what a slot that becomes free looks through.
const maxQueue = 4096

// Limits bounds how many calls are under way at once, and how many in a time. For a slot calls
// wait in a queue; how callers share the slots, those of a server and those of a tool, see package
// fair. For a rate no call waits.
//
// Calls of tools that carry out others ([gate.LimitRelays]) have slots of their own, four
// times as many: they wait for the calls that they carry out, and must not hold the slots of
// those. Session and Tool hold for them too.
//
// A bucket of a rate that has filled again is as good as none, and makes room for
// another. If all are in use, a call that needs a new one is refused: to forget
// one would be to let its owner begin anew. With Options.Rates the buckets are shared
// with other gateways, and calls take tokens from portions of them.
type Limits struct {
	o          Options // but for Concurrent and Session, which can change
	concurrent atomic.Int64
	session    atomic.Int64
	rates      rates
	calls      *pool
	relays     *pool
	agents     *pool
	away       *pool // of calls that have given their slot back for a while
	work       *pool // bytes of arguments and results
}

// rates count calls and bytes.
type rates interface {
	// take takes a token for each charge to a rate, or none, and returns those charges.
	take(ctx context.Context, charges []gate.Charge) ([]gate.Charge, error)
	// giveBack gives back the tokens of calls that were not made.
	giveBack(spent []gate.Charge)
	// spend takes the bytes that a call has used.
	spend(spent []gate.Charge, bytes int64)
}

// usualConcurrent is how many calls may be under way at one time unless the configuration says
// otherwise.
const usualConcurrent = 64

// processors is how many processors the program had when it began.
var processors = runtime.GOMAXPROCS(0)

// maxWork is how many bytes of arguments and results are worked on at once by one processor, if
// they are of several calls. One processor is left to calls with less.
const maxWork = 256 << 10

var _ gate.Limiter = (*Limits)(nil)

// New returns Limits with nothing taken.
func New(o Options) *Limits {
	if o.Concurrent <= 0 {
		o.Concurrent = usualConcurrent
	}
	if o.Wait == 0 {
		o.Wait = time.Second
	}
	if o.Queue == 0 {
		o.Queue = int(min(more(int64(o.Concurrent)), maxQueue))
	}
	if o.Buckets <= 0 {
		o.Buckets = 1 << 16
	}
	l := &Limits{o: o, rates: newBuckets(o.Buckets)}
	if o.Rates != nil {
		l.rates = &portions{from: o.Rates, at: map[bucketKey]*portion{}}
	}
	l.concurrent.Store(int64(o.Concurrent))
	l.session.Store(int64(o.Session))
	newPool := func(times int64, what string) *pool {
		return &pool{fair.NewQueue[gate.SessionKey, room](o.Queue), times, what}
	}
	l.calls = newPool(1, "")
	l.relays = newPool(timesMore, " to tools that carry out others")
	l.agents = newPool(timesMore, "")
	l.away = newPool(timesMore, "")
	l.work = newPool(0, "")
	return l
}

// size returns how many slots a pool has.
func (l *Limits) size(p *pool) int64 {
	if p.times == 1 {
		return l.concurrent.Load()
	}
	return more(l.concurrent.Load())
}

// Enter implements [gate.Limiter]. The error is a [*gate.Busy] if there was no slot in time, and
// wraps ctx.Err() if ctx ended first.
func (l *Limits) Enter(ctx context.Context, e gate.Entry) (gate.Slot, error) {
	p := l.poolOf(e.Limit)
	if p == nil {
		return nil, fmt.Errorf("there is no limit %q", e.Limit)
	}
	h := &holding{limits: l, pool: p, session: e.Session}
	l.slot(&h.slot, p, e.Caller, e.Session)
	if err := p.Take(ctx, &h.slot, l.o.Wait); err != nil {
		return nil, p.busy(err)
	}
	h.has = true
	return h, nil
}

// slot fills in what a call takes of a pool.
func (l *Limits) slot(d *demand, p *pool, caller, session gate.SessionKey) {
	d.Caller, d.Lane = caller, session.ID
	d.Add(all, l.size(p), 1)
	if most := l.session.Load(); most > 0 {
		d.Add(room{ofSession, session}, most, 1)
	}
}

// poolOf returns the slots that a limit is on; nil if there is no such limit.
func (l *Limits) poolOf(name string) *pool {
	switch name {
	case gate.LimitConcurrent:
		return l.calls
	case gate.LimitRelays:
		return l.relays
	case gate.LimitAgents:
		return l.agents
	default:
		return nil
	}
}

func limitOf(limit func(string) int, name string) int64 {
	if limit == nil || name == "" {
		return 0
	}
	return int64(limit(name))
}

// Change replaces the numbers [Options].Concurrent and Session, with the same meanings. Slots
// that are taken stay taken, and rates stay as used up as they are. Calls that are under way beyond
// a smaller limit go on, and no others begin before they have ended.
func (l *Limits) Change(concurrent, session int) {
	if concurrent <= 0 {
		concurrent = usualConcurrent
	}
	l.session.Store(int64(session))
	l.concurrent.Store(int64(concurrent))
	for _, p := range []*pool{l.calls, l.relays, l.agents, l.away} {
		p.Change(all, l.size(p))
	}
}

// Places returns how many calls have a slot, how many wait for one, and how many slots there are.
func (l *Limits) Places() (taken, waiting, most int64) {
	taken, waiting = l.calls.State(all)
	return taken, waiting, l.concurrent.Load()
}

// ReturnRates puts back what this gateway has taken of shared rates and not used. Call it each second
// or so.
func (l *Limits) ReturnRates(ctx context.Context) error {
	if ps, ok := l.rates.(*portions); ok {
		return ps.returnAll(ctx)
	}
	return nil
}
