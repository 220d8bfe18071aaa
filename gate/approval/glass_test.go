package approval

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A glass is broken only once that is recorded, is whole again at its time and by command, and
// each end is recorded.
func TestGlass(t *testing.T) {
	var g Glass
	said := make(chan string, 10)
	note := func(what string) error { said <- what; return nil }
	next := func() string {
		t.Helper()
		select {
		case what := <-said:
			return what
		case <-time.After(time.Minute):
			t.Fatal("nothing is recorded")
			return ""
		}
	}
	if _, err := g.Break(time.Hour, func(string) error { return errors.New("the disk is full") }); err == nil || !g.Until().IsZero() {
		t.Error("broken without a record")
	}
	for _, d := range []time.Duration{-1, MaxGlass + 1, 0} {
		if _, err := g.Break(d, note); err == nil {
			t.Errorf("broken for %v", d)
		}
	}
	until, err := g.Break(time.Hour, note)
	if left := time.Until(until); err != nil || !g.Until().Equal(until) || left < 59*time.Minute || left > time.Hour {
		t.Errorf("until %v, %v", g.Until(), err)
	}
	if what := next(); what != "until "+until.UTC().Format(time.RFC3339) {
		t.Errorf("recorded: %q", what)
	}
	if _, err := g.Break(0, note); err != nil || !g.Until().IsZero() || next() != "ended" {
		t.Error("it is not ended by command", err)
	}
	if _, err := g.Break(0, note); err == nil {
		t.Error("what has ended is ended once more")
	}
	if _, err := g.Break(time.Second, note); err != nil {
		t.Fatal(err)
	}
	if all := []string{next(), next()}; !slices.Contains(all, "ended by itself") || !g.Until().IsZero() {
		t.Errorf("recorded: %q, until %v", all, g.Until())
	}
}
