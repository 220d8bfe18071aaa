package telemetry

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A Tally counts what happens off the way of calls, and how long it takes, by the values of one label: a few that the program knows. The zero Tally is
// empty. Use it from several goroutines.
type Tally struct {
	mu sync.Mutex
	by map[string]*Point
}

// Add counts one that took so long.
func (t *Tally) Add(value string, took time.Duration) {
	bucket, _ := slices.BinarySearch(operationBounds, took.Seconds())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]*Point{}
	}
	p := t.by[value]
	if p == nil {
		p = &Point{Labels: []string{value}, Counts: make([]uint64, len(operationBounds)+1)}
		t.by[value] = p
	}
	p.Counts[bucket]++
	p.Sum += took.Seconds()
	p.Value++
}

// Counter returns how many there were.
func (t *Tally) Counter(name, help, unit, label string) Metric {
	return Metric{Name: name, Help: help, Unit: unit, Kind: Counter, Labels: []string{label}, Points: t.points()}
}

// Histogram returns how long they took.
func (t *Tally) Histogram(name, help, label string) Metric {
	return Metric{Name: name, Help: help, Unit: "s", Kind: Histogram, Labels: []string{label}, Bounds: operationBounds, Points: t.points()}
}

func (t *Tally) points() (all []Point) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, value := range slices.Sorted(maps.Keys(t.by)) {
		p := *t.by[value]
		p.Counts = slices.Clone(p.Counts)
		all = append(all, p)
	}
	return all
}
