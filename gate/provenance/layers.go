package provenance

import "maps"

// layer is what one or several results taught. Layers grow towards the older
// ones by merging, at least by a factor of mergeFactor each, so that there are
// few of them and each value is copied rarely.
type layer[V any] struct {
	values map[uint64]V
	older  *layer[V]
	total  int // values in this layer and the older ones
}

const mergeFactor = 4

// add returns the layers with one more, in which both makes one of two.
func (l *layer[V]) add(met map[uint64]V, both func(older, newer V) V) *layer[V] {
	if len(met) == 0 {
		return l
	}
	for l != nil && len(l.values) < mergeFactor*len(met) {
		merged := maps.Clone(l.values)
		for k, v := range met {
			if old, ok := merged[k]; ok {
				v = both(old, v)
			}
			merged[k] = v
		}
		met, l = merged, l.older
	}
	total := len(met)
	if l != nil {
		total += l.total
	}
	return &layer[V]{met, l, total}
}

// newest returns the layers without the oldest ones, so that at most max values are left,
// or one layer.
func (l *layer[V]) newest(max int) *layer[V] {
	if l == nil || l.total <= max {
		return l
	}
	older := l.older.newest(max - len(l.values))
	if len(l.values) >= max {
		older = nil
	}
	total := len(l.values)
	if older != nil {
		total += older.total
	}
	return &layer[V]{l.values, older, total}
}
