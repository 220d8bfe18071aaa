package panicked_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/panicked"
)

func recovered(f func()) (err error) {
	defer func() { err = panicked.Error(recover()) }()
	f()
	return nil
}

// TestError: the error names the function that panicked, in one line.
func TestError(t *testing.T) {
	var none map[string]int
	for want, f := range map[string]func(){
		`^panic: oops \(in panicked_test\.TestError\.func1, panicked_test\.go:\d+\)$`:                                                  func() { panic("oops") },
		`^panic: assignment to entry in nil map \(in panicked_test\.TestError\.func2, panicked_test\.go:\d+\)$`:                        func() { none["a"] = 1 },
		`^panic: runtime error: index out of range \[9\] with length 0 \(in panicked_test\.TestError\.func3, panicked_test\.go:\d+\)$`: func() { _ = []int{}[len("123456789")] },
	} {
		if err := recovered(f); !regexp.MustCompile(want).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
