package sanitize

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// Bytes that are passed over by eights are those that are passed over one by one.
func TestWatchedBytesAreFound(t *testing.T) {
	r := seed.Rand(t)
	for range 20_000 {
		b := bytes.Repeat([]byte{'a'}, r.IntN(40))
		for range r.IntN(4) {
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(r.IntN(256))
			}
		}
		s, from := string(b), r.IntN(len(b)+1)
		want := from
		for want < len(s) && watched[s[want]] == 0 {
			want++
		}
		if got := nextWatched(s, from); got != want {
			t.Fatalf("in %q from %d on the next is at %d, want %d", s, from, got, want)
		}
		c := byte("<[a\\"[r.IntN(4)])
		if got := last(s, c); got != strings.LastIndexByte(s, c) {
			t.Fatalf("%q stands last in %q at %d", c, s, got)
		}
	}
}
