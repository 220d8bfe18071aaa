package provenance

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// sharedKey keys the hashes of values instead of provenanceSeed, so that they mean the same in several processes.
var sharedKey atomic.Pointer[[2]uint64]

// ShareKey has values hashed by a key of 16 bytes, so that other processes that have it can [Decode] them. It
// is called before any value is met.
func ShareKey(key []byte) {
	sharedKey.Store(&[2]uint64{binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])})
}

// provenanceSeed keys the hashes of values, for the life of the process, unless there is a sharedKey.
var provenanceSeed = maphash.MakeSeed()

func hashOf(form string) uint64 {
	if key := sharedKey.Load(); key != nil {
		return sipHash(key, form)
	}
	return maphash.String(provenanceSeed, form)
}

// sipHash is SipHash-2-4: short inputs hashed by a secret key, so that no one can find two of one hash.
func sipHash(key *[2]uint64, text string) uint64 {
	v0, v1, v2, v3 := key[0]^0x736f6d6570736575, key[1]^0x646f72616e646f6d, key[0]^0x6c7967656e657261, key[1]^0x7465646279746573
	round := func() {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	word := func(m uint64) {
		v3 ^= m
		round()
		round()
		v0 ^= m
	}
	last := uint64(len(text)) << 56
	for ; len(text) >= 8; text = text[8:] {
		var m uint64
		for i := range 8 {
			m |= uint64(text[i]) << (8 * i)
		}
		word(m)
	}
	for i := range len(text) {
		last |= uint64(text[i]) << (8 * i)
	}
	word(last)
	v2 ^= 0xff
	for range 4 {
		round()
	}
	return v0 ^ v1 ^ v2 ^ v3
}
