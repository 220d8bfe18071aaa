package pages

import (
	"strings"
	"testing"
	"time"
)

// A chart has each call in the part of its time, and none that is outside.
func TestChart(t *testing.T) {
	first := time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC)
	for _, long := range []time.Duration{0, time.Millisecond, time.Second, 59 * time.Second, time.Hour, 40 * 24 * time.Hour} {
		s := Around(first, first.Add(long))
		s.Add(first, "ok")
		s.Add(first.Add(long), "refused_pin")
		s.Add(first.Add(-time.Hour), "ok")
		s.Add(first.Add(long+s.part*time.Duration(len(s.calls))), "ok")
		calls := 0
		for _, one := range s.calls {
			calls += total(one)
		}
		if drawn := string(Chart(s)); calls != 2 || strings.Count(drawn, "<rect") != 2 {
			t.Errorf("over %v: %d calls, %s", long, calls, drawn)
		}
	}
}
