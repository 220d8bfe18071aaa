package evict

import "time"

// Next returns the entry to drop from a table that is not empty: the oldest of the owner that has
// the most. Of says whose an entry is, and since when.
func Next[K, O comparable, V any](table map[K]V, of func(V) (owner O, since time.Time)) (key K) {
	count := make(map[O]int)
	most := 0
	for _, v := range table {
		owner, _ := of(v)
		count[owner]++
		most = max(most, count[owner])
	}
	var oldest time.Time
	found := false
	for k, v := range table {
		if owner, since := of(v); count[owner] == most && (!found || since.Before(oldest)) {
			key, oldest, found = k, since, true
		}
	}
	return key
}
