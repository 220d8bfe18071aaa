package rewrite

// DividesForRemainders reports whether remainders are written as divisions.
func DividesForRemainders() bool { return divideForRemainders }

// DivideForRemainders has remainders written as divisions, or not.
func DivideForRemainders(on bool) (restore func()) {
	old := divideForRemainders
	divideForRemainders = on
	return func() { divideForRemainders = old }
}

// AccessesAtOnce has a guest come to its meter after so many loads and stores.
func AccessesAtOnce(n int) (restore func()) {
	old := accessesAtOnce
	accessesAtOnce = n
	return func() { accessesAtOnce = old }
}
