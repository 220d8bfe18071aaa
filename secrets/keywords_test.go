package secrets

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// A long text, which is gone through in lanes, has the keywords that it has byte by byte, in
// their order: wherever they stand, and however many there are.
func TestKeywordsInLanes(t *testing.T) {
	set, err := loadRules()
	if err != nil {
		t.Fatal(err)
	}
	m := set.keywords
	r := seed.Rand(t)
	var words []string
	for _, one := range set.rules {
		words = append(words, one.Keywords...)
	}
	filler := "plain words that say nothing, "
	for range 40 {
		var b strings.Builder
		often := r.IntN(6) // how many fillers stand between two keywords; with none there are more than are kept
		for size := minLane*len(lanes{}) - 50 + r.IntN(40*minLane); b.Len() < size; {
			b.WriteString(filler[r.IntN(len(filler)):])
			b.WriteString(strings.Repeat(filler, often))
			if often == 0 {
				b.WriteString(strings.Repeat(words[r.IntN(len(words))], r.IntN(100)))
			}
			word := words[r.IntN(len(words))]
			b.WriteString(word[:r.IntN(len(word)+1)])
			b.WriteString(strings.ToUpper(words[r.IntN(len(words))]))
		}
		type at struct {
			w     *word
			start int
		}
		var want, got []at
		m.walk(b.String(), 0, 0, func(w *word, start int) { want = append(want, at{w, start}) })
		m.each(b.String(), func(w *word, start int) { got = append(got, at{w, start}) })
		if !slices.Equal(want, got) {
			t.Fatalf("%d keywords in lanes, %d byte by byte, or others, in %d bytes", len(got), len(want), b.Len())
		}
	}
}
