package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A budget bounds how many series there are, over all families.
type budget struct {
	mu       sync.Mutex
	left     int
	reserve  int           // of left, for what stands for names beyond the budget
	overflow atomic.Uint64 // sets of labels that got no series of their own
}

// take takes n series; sparing leaves the reserve.
func (b *budget) take(n int, sparing bool) bool {
	if sparing && b.left-n < b.reserve || b.left < n {
		return false
	}
	b.left -= n
	return true
}

// A labelled key has its labels' values, and a coarser key in whose series it is counted
// when there is no room for its own.
type labelled[K any] interface {
	comparable
	values() []string
	coarse() K
}

// A family is an instrument: a cell for each set of labels that was met.
type family[K labelled[K]] struct {
	Metric
	scale  float64 // what is added, in one Unit
	limits []int64 // Bounds in what is added
	budget *budget
	cells  atomic.Pointer[map[K]*cell] // replaced, never changed
	last   cell                        // for what has no room at all
}

// A cell is what is counted for one set of labels.
type cell struct {
	sum     atomic.Int64 // of a counter: its value
	buckets []atomic.Uint64
}

func newFamily[K labelled[K]](b *budget, m Metric, scale float64) *family[K] {
	f := &family[K]{Metric: m, scale: scale, budget: b}
	for _, bound := range m.Bounds {
		f.limits = append(f.limits, int64(bound*scale))
	}
	f.last.buckets = make([]atomic.Uint64, len(f.limits)+1)
	f.cells.Store(&map[K]*cell{})
	return f
}

// add adds n to the counter for k, or counts n in its histogram.
func (f *family[K]) add(k K, n int64) {
	c := (*f.cells.Load())[k]
	if c == nil {
		c = f.cell(k)
	}
	c.sum.Add(n)
	if f.Kind == Histogram {
		c.buckets[f.bucket(n)].Add(1)
	}
}

func (f *family[K]) bucket(n int64) int {
	for i, limit := range f.limits {
		if n <= limit {
			return i
		}
	}
	return len(f.limits)
}

// cell returns the cell for k, made if there is room, else that of what is coarser.
func (f *family[K]) cell(k K) *cell {
	f.budget.mu.Lock()
	defer f.budget.mu.Unlock()
	cells := *f.cells.Load()
	for sparing := true; ; sparing = false {
		if c := cells[k]; c != nil {
			return c
		}
		if f.budget.take(f.series(), sparing) {
			break
		}
		f.budget.overflow.Add(1)
		if !sparing {
			return &f.last
		}
		k = k.coarse()
	}
	c := &cell{buckets: make([]atomic.Uint64, len(f.limits)+1)}
	next := maps.Clone(cells)
	next[k] = c
	f.cells.Store(&next)
	return c
}

// series is how many series one set of labels makes in an exposition.
func (f *family[K]) series() int {
	if f.Kind == Histogram {
		return len(f.limits) + 3 // with the bucket beyond the last bound, the sum and the count
	}
	return 1
}

// metric returns what was counted until now.
func (f *family[K]) metric() Metric {
	m := f.Metric
	for k, c := range *f.cells.Load() {
		m.Points = append(m.Points, f.point(k.values(), c))
	}
	if rest := f.point(nil, &f.last); rest.Value != 0 || rest.Count() > 0 {
		for range f.Labels {
			rest.Labels = append(rest.Labels, Other)
		}
		m.Points = append(m.Points, rest)
	}
	return m
}

func (f *family[K]) point(labels []string, c *cell) Point {
	p := Point{Labels: labels}
	if f.Kind != Histogram {
		p.Value = float64(c.sum.Load()) / f.scale
		return p
	}
	p.Sum = float64(c.sum.Load()) / f.scale
	for i := range c.buckets {
		p.Counts = append(p.Counts, c.buckets[i].Load())
	}
	return p
}
