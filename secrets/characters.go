package secrets

import (
	"math"
	"unicode/utf8"
)

func isDigit(c byte) bool          { return c >= '0' && c <= '9' }
func isCapital(c byte) bool        { return c >= 'A' && c <= 'Z' }
func isCapitalOrDigit(c byte) bool { return isDigit(c) || isCapital(c) }
func isWord(c byte) bool           { return isCapitalOrDigit(c) || c >= 'a' && c <= 'z' || c == '_' }

// entropy is Shannon's, in bits a character, counted as the library does: by
// characters, over a length in bytes.
func entropy(s string) float64 {
	var ascii [utf8.RuneSelf]int
	var other map[rune]int
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			ascii[r]++
		case other == nil:
			other = map[rune]int{r: 1}
		default:
			other[r]++
		}
	}
	var sum float64
	add := func(n int) {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	for _, n := range ascii {
		add(n)
	}
	for _, n := range other {
		add(n)
	}
	return sum
}
