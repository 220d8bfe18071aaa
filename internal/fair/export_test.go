package fair

// Sizes returns how many bounds a queue has, and how many callers one of them.
func Sizes[K, R comparable](q *Queue[K, R], of R) (bounds, callers int) {
	return len(q.bounds), len(q.bounds[of].by)
}
