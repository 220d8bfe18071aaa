package telemetry

import (
	"slices"
	"testing"
	"time"
)

func TestTally(t *testing.T) {
	var tally Tally
	if c := tally.Counter("c", "help", "{x}", "l"); len(c.Points) != 0 {
		t.Errorf("an empty one: %+v", c)
	}
	for _, took := range []time.Duration{0, time.Millisecond, 2 * time.Second, time.Hour} {
		tally.Add("b", took)
	}
	tally.Add("a", time.Second)
	h := tally.Histogram("h", "help", "l")
	if len(h.Points) != 2 || h.Points[0].Labels[0] != "a" || h.Points[1].Labels[0] != "b" {
		t.Fatalf("%+v", h.Points)
	}
	b := h.Points[1]
	two := slices.Index(h.Bounds, 2)
	if b.Count() != 4 || b.Counts[0] != 2 || b.Counts[two] != 1 || b.Counts[len(h.Bounds)] != 1 || b.Sum < 3602 || b.Sum > 3603 {
		t.Errorf("%+v", b)
	}
	if c := tally.Counter("c", "help", "{x}", "l"); c.Points[1].Value != 4 || c.Kind != Counter {
		t.Errorf("%+v", c)
	}
}
