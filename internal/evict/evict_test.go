package evict_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/evict"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

type entry struct {
	owner string
	since time.Time
}

func of(e entry) (string, time.Time) { return e.owner, e.since }

// However many entries one caller adds, others keep theirs while they have fewer.
func TestNext(t *testing.T) {
	r := seed.Rand(t)
	const places = 32
	for range 200 {
		table, now := make(map[string]entry), time.Now()
		add := func(key, owner string) {
			if len(table) >= places {
				delete(table, evict.Next(table, of))
			}
			now = now.Add(time.Second)
			table[key] = entry{owner, now}
		}
		var quiet []string
		for i := range 1 + r.IntN(8) {
			for j := range 1 + r.IntN(3) {
				key := fmt.Sprint("quiet", i, "-", j)
				quiet = append(quiet, key)
				add(key, fmt.Sprint("quiet", i))
			}
		}
		flood(r, add)
		for _, key := range quiet {
			if _, ok := table[key]; !ok {
				t.Fatalf("%s has made room for a caller that holds more", key)
			}
		}
		if len(table) != places {
			t.Fatalf("the table has %d entries", len(table))
		}
		last, _ := table["flood-last"]
		if last.owner != "flood" {
			t.Fatal("the newest entry of the flood is gone before its oldest")
		}
	}
}

func flood(r *rand.Rand, add func(key, owner string)) {
	for i := range 100 + r.IntN(100) {
		add(fmt.Sprint("flood", i), "flood")
	}
	add("flood-last", "flood")
}
