package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns a compiled expression. The first call compiles it, and
// panics if it is none: a test has to use it. Call it from several goroutines.
func Regexp(source string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })
}
