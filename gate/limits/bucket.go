package limits

import (
	"fmt"
	"math"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// bucketKey is what calls are counted together for.
type bucketKey struct {
	owner gate.Owner
	limit string
}

// bucket holds the tokens of one rate: of calls, and of bytes. Both fill at an even
// pace up to a bound; a bound of zero is no limit.
type bucket struct {
	key          bucketKey
	rate         obligation.Rate
	calls, bytes float64
	filled       time.Time // when both were what they are
}

// possible refuses a rate that no call keeps.
func possible(r obligation.Rate) error {
	if r.Per <= 0 || r.Calls < 0 || r.Bytes < 0 || r.Burst < 0 || r.Calls+r.Bytes == 0 {
		return fmt.Errorf("rate %s can never be met", r)
	}
	return nil
}

// Burst is how many tokens of calls a bucket holds at most.
func Burst(r obligation.Rate) float64 {
	if r.Burst > 0 {
		return float64(r.Burst)
	}
	return float64(r.Calls)
}

// fill adds what has come since the last time. The clock is the monotonic one of
// [time.Now]: to set the machine's clock changes nothing.
func (b *bucket) fill(now time.Time) {
	share := float64(now.Sub(b.filled)) / float64(b.rate.Per)
	b.calls = min(Burst(b.rate), b.calls+share*float64(b.rate.Calls))
	b.bytes = min(float64(b.rate.Bytes), b.bytes+share*float64(b.rate.Bytes))
	b.filled = now
}

// wait returns how long it takes until the bucket has a token of a call, and one of
// a byte; zero if it has.
func (b *bucket) wait() time.Duration {
	return max(b.until(b.calls, 1, b.rate.Calls), b.until(b.bytes, 1, b.rate.Bytes))
}

// untilFull returns how long it takes until the bucket is full; zero if it is.
func (b *bucket) untilFull() time.Duration {
	return max(b.until(b.calls, Burst(b.rate), b.rate.Calls), b.until(b.bytes, float64(b.rate.Bytes), b.rate.Bytes))
}

// until returns how long it takes from have to want tokens, at so many in the
// rate's time, rounded up to whole milliseconds.
func (b *bucket) until(have, want float64, rate int64) time.Duration {
	const rounding = 1e-9 // of a token; what is added in many parts may lack it
	if rate == 0 || have >= want-rounding {
		return 0
	}
	ms := math.Ceil((want - have) / float64(rate) * float64(b.rate.Per) / float64(time.Millisecond))
	return time.Duration(min(ms, math.MaxInt64/float64(2*time.Millisecond))) * time.Millisecond
}
