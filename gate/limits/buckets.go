package limits

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// MaxDebt is how far a bucket of bytes can fall below empty, in fills: a caller that has used more
// than that does not wait for longer.
const MaxDebt = 1000

// looked is how many of the buckets that were used longest ago are looked at to
// find one that is full. They are not in the order in which they fill.
const looked = 16

// buckets are the buckets of tokens of all rates.
type buckets struct {
	max int

	mu   sync.Mutex
	at   map[bucketKey]*list.Element
	used *list.List // of *bucket, the last used one in front
}

func newBuckets(max int) *buckets {
	return &buckets{max: max, at: make(map[bucketKey]*list.Element), used: list.New()}
}

// take takes a token for each charge to a rate, or none, and returns those charges.
func (bs *buckets) take(_ context.Context, charges []gate.Charge) ([]gate.Charge, error) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	now := time.Now()
	var spent []gate.Charge
	for _, c := range charges {
		err := bs.takeOne(c, now)
		if err != nil {
			bs.add(spent, 1, 0)
			return nil, err
		}
		spent = append(spent, c)
	}
	return spent, nil
}

func (bs *buckets) takeOne(c gate.Charge, now time.Time) error {
	r := *c.Rate
	if err := possible(r); err != nil {
		return err
	}
	b, wait := bs.bucket(bucketKey{c.Owner, c.Limit}, r, now)
	if b == nil {
		return fmt.Errorf("%w: %w", errTable, &obligation.OverRate{Rate: r, After: wait})
	}
	if wait := b.wait(); wait > 0 {
		return &obligation.OverRate{Rate: r, After: wait}
	}
	if r.Calls > 0 {
		b.calls--
	}
	return nil
}

// errTable is returned if there is no room for another bucket.
var errTable = errors.New("the gateway has reached its limit of rates that it counts")

// bucket returns the bucket of a key as it is now. If there is none, and no room
// for one, it returns when there will be.
func (bs *buckets) bucket(k bucketKey, r obligation.Rate, now time.Time) (*bucket, time.Duration) {
	if at, ok := bs.at[k]; ok {
		bs.used.MoveToFront(at)
		b := at.Value.(*bucket)
		b.fill(now)
		return b, 0
	}
	if wait := bs.makeRoom(now); wait > 0 {
		return nil, wait
	}
	b := &bucket{key: k, rate: r, calls: Burst(r), bytes: float64(r.Bytes), filled: now}
	bs.at[k] = bs.used.PushFront(b)
	return b, 0
}

// makeRoom removes full buckets until there is room for one more, or returns when
// the first of them will be full.
func (bs *buckets) makeRoom(now time.Time) time.Duration {
	first := time.Duration(math.MaxInt64)
	at := bs.used.Back()
	for range looked {
		if len(bs.at) < bs.max {
			return 0
		}
		b, before := at.Value.(*bucket), at.Prev()
		b.fill(now)
		if full := b.untilFull(); full > 0 {
			first = min(first, full)
		} else {
			bs.used.Remove(at)
			delete(bs.at, b.key)
		}
		if at = before; at == nil {
			break
		}
	}
	if len(bs.at) < bs.max {
		return 0
	}
	return first
}

// giveBack gives back the tokens of calls that were not made.
func (bs *buckets) giveBack(spent []gate.Charge) {
	if spent != nil {
		bs.mu.Lock()
		defer bs.mu.Unlock()
		bs.add(spent, 1, 0)
	}
}

// spend takes the bytes that a call has used.
func (bs *buckets) spend(spent []gate.Charge, bytes int64) {
	if spent != nil {
		bs.mu.Lock()
		defer bs.mu.Unlock()
		bs.add(spent, 0, -float64(bytes))
	}
}

// add adds to the buckets of charges. One that has been removed meanwhile was full,
// and is made again. Callers hold mu.
func (bs *buckets) add(spent []gate.Charge, calls, bytes float64) {
	now := time.Now()
	for _, c := range spent {
		r := *c.Rate
		k := bucketKey{c.Owner, c.Limit}
		if _, ok := bs.at[k]; !ok && (bytes == 0 || r.Bytes == 0) {
			continue // a full one holds no more
		}
		b, _ := bs.bucket(k, r, now)
		if b == nil { // there is no room, and the next user of it will find none
			continue
		}
		b.calls = min(Burst(r), b.calls+calls)
		b.bytes = max(-MaxDebt*float64(r.Bytes), b.bytes+bytes)
	}
}
