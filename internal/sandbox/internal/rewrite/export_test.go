package rewrite

// AccessesAtOnce has a guest come to its meter after so many loads and stores.
func AccessesAtOnce(n int) (restore func()) {
	old := accessesAtOnce
	accessesAtOnce = n
	return func() { accessesAtOnce = old }
}
