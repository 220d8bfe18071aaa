package session

import (
	"hash/maphash"
	"time"
)

// filterBits is the size of one generation of a filter: 128 KiB. With three bits
// a key, 20,000 dropped sessions make it take 2 in 10,000 others for dropped, and
// 100,000 make it 2 in 100.
const filterBits = 1 << 20

// filter remembers keys for a time of at least ttl and at most twice that. It is a Bloom filter
// (Bloom 1970) in two generations. The older one is emptied every ttl.
type filter struct {
	ttl    time.Duration
	seed   maphash.Seed
	bits   [2][]uint64 // the newer generation first
	turned time.Time   // when the newer one began
}

func newFilter(ttl time.Duration) filter { return filter{ttl: ttl, seed: maphash.MakeSeed()} }

func (f *filter) add(k key, now time.Time) {
	f.turn(now)
	if f.bits[0] == nil {
		f.bits[0] = make([]uint64, filterBits/64)
	}
	for _, bit := range f.places(k) {
		f.bits[0][bit/64] |= 1 << (bit % 64)
	}
}

func (f *filter) has(k key, now time.Time) bool {
	f.turn(now)
	for _, bits := range f.bits {
		if bits == nil {
			continue
		}
		found := true
		for _, bit := range f.places(k) {
			found = found && bits[bit/64]&(1<<(bit%64)) != 0
		}
		if found {
			return true
		}
	}
	return false
}

// turn begins a new generation when it is time. One that is nil has no keys.
func (f *filter) turn(now time.Time) {
	age := now.Sub(f.turned)
	if age < f.ttl {
		return
	}
	f.bits[1], f.bits[0] = f.bits[0], nil
	if age >= 2*f.ttl {
		f.bits[1] = nil
	}
	f.turned = now
}

func (f *filter) places(k key) [3]uint64 {
	h := maphash.Comparable(f.seed, k)
	return [3]uint64{h % filterBits, h >> 20 % filterBits, h >> 40 % filterBits}
}

// unused reports whether the filter has had no keys for a while.
func (f *filter) unused() bool { return f.bits[0] == nil && f.bits[1] == nil }
