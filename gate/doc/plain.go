package doc

import "math/bits"

// Eight bytes are looked at together: each of these has one bit set in all of them.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// eight returns the eight bytes at s[i:], the first in the lowest bits.
func eight[T string | []byte](s T, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

// marks sets the top bit of each byte that a string of JSON does not have as it is: a
// quotation mark, a backslash, a control character. Bits above the lowest that is set may
// be wrong.
func marks(x uint64) uint64 {
	quote, slash := x^('"'*ones), x^('\\'*ones)
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-' '*ones)&^x) & tops
}

// plain returns where the first byte from s[i] on is that a string of JSON does not have
// as it is; len(s) if there is none.
func plain[T string | []byte](s T, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if m := marks(eight(s, i)); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// plainASCII is plain that also ends at a byte outside of ASCII.
func plainASCII(s []byte, i int) int {
	for ; i+8 <= len(s); i += 8 {
		x := eight(s, i)
		if m := marks(x) | x&tops; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] < 0x80 && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}
