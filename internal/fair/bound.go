package fair

import (
	"maps"
	"slices"
	"time"
)

// Extras is how many callers that held nothing may have something beyond a bound.
const Extras = 16

// remembered is for how long a caller that has called leaves room for another.
const remembered = time.Minute

// A Bound is how much there is of something, such as slots or bytes, and what each caller has of
// it. Three rules share it:
//
//   - All callers together have at most Most.
//   - A caller that has nothing gets what it asks for at once, even beyond Most. At most [Extras]
//     callers have something beyond it.
//   - A caller that has something gets at most half of Most if another one has called in the last
//     minute.
//
// The zero Bound is empty. It is not safe for use by several goroutines.
type Bound[K comparable] struct {
	Most   int64
	taken  int64
	by     map[K]*int64 // what callers have, and had a while ago
	swept  int          // how many those were after the last sweep
	extras []K          // callers that had nothing, while there was not enough
	called [2]visit[K]  // the last one, and the last of another caller
}

type visit[K comparable] struct {
	caller K
	at     time.Time
}

// Visit notes that a caller has called, whether or not it gets something.
func (b *Bound[K]) Visit(k K, now time.Time) {
	if b.called[0].caller != k {
		b.called[1] = b.called[0]
		b.called[0].caller = k
	}
	b.called[0].at = now
}

// May reports whether a caller may have n more now.
func (b *Bound[K]) May(k K, n int64) bool {
	return b.Fits(n) && b.Within(k, n) || b.New(k)
}

// Fits reports whether n are left.
func (b *Bound[K]) Fits(n int64) bool { return b.taken <= b.Most-n }

// Within reports whether a caller that gets n more has no more than its share.
func (b *Bound[K]) Within(k K, n int64) bool {
	has := b.Has(k)
	return has == 0 || has+n <= b.Most/2 || !b.shared(k)
}

// New reports whether a caller may have something beyond the bound, because it has nothing.
func (b *Bound[K]) New(k K) bool { return len(b.extras) < Extras && b.Has(k) == 0 }

// shared reports whether a caller different from k has called in the last minute.
func (b *Bound[K]) shared(k K) bool {
	other := b.called[0]
	if other.caller == k {
		other = b.called[1]
	}
	return !other.at.IsZero() && time.Since(other.at) < remembered
}

// Take gives n to a caller, whether or not it may have them.
func (b *Bound[K]) Take(k K, n int64) {
	has := b.of(k)
	if !b.Fits(n) && *has == 0 {
		b.extras = append(b.extras, k)
	}
	b.taken += n
	*has += n
}

// Give gives back n of what a caller has.
func (b *Bound[K]) Give(k K, n int64) {
	has := b.of(k)
	b.taken -= n
	*has -= n
	if len(b.extras) == 0 {
		return
	}
	if *has == 0 {
		b.extras = slices.DeleteFunc(b.extras, func(o K) bool { return o == k })
	}
	if beyond := max(0, b.taken-b.Most); int64(len(b.extras)) > beyond { // some are within it now
		b.extras = slices.Delete(b.extras, 0, len(b.extras)-int(beyond))
	}
}

// of returns where it is kept what a caller has.
func (b *Bound[K]) of(k K) *int64 {
	if has := b.by[k]; has != nil {
		return has
	}
	if b.by == nil {
		b.by = make(map[K]*int64)
	}
	if len(b.by) >= 2*b.swept+16 {
		maps.DeleteFunc(b.by, func(_ K, has *int64) bool { return *has == 0 })
		b.swept = len(b.by)
	}
	has := new(int64)
	b.by[k] = has
	return has
}

// Has returns what a caller has.
func (b *Bound[K]) Has(k K) int64 {
	if has := b.by[k]; has != nil {
		return *has
	}
	return 0
}

// idle reports whether the bound is as good as a new one.
func (b *Bound[K]) idle(now time.Time) bool {
	return b.taken == 0 && now.Sub(b.called[0].at) >= remembered
}
