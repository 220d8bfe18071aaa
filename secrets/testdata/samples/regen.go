// Package secrets stands in the place of the package with which gitleaks makes the
// secrets of its samples: at random, from SAMPLES_SEED.
package secrets

import (
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"strconv"
	"strings"
)

var random = func() *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("SAMPLES_SEED"), 10, 64)
	if err != nil {
		panic(err)
	}
	return rand.New(rand.NewPCG(seed, 0))
}()

// NewSecret returns a text that an expression matches.
func NewSecret(regex string) string {
	e, err := syntax.Parse(regex, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return generate(e)
}

func generate(e *syntax.Regexp) string {
	low, high := 1, 1
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		return printable(e.Rune)
	case syntax.OpAlternate:
		return generate(e.Sub[random.IntN(len(e.Sub))])
	case syntax.OpQuest:
		low = 0
	case syntax.OpStar:
		low, high = 0, 10
	case syntax.OpPlus:
		high = 10
	case syntax.OpRepeat:
		if low, high = e.Min, e.Max; high < 0 {
			high = low + 10
		}
	}
	var b strings.Builder
	for range low + random.IntN(high-low+1) {
		for _, s := range e.Sub {
			b.WriteString(generate(s))
		}
	}
	return b.String()
}

func printable(ranges []rune) string {
	var all []rune
	for i := 0; i < len(ranges); i += 2 {
		for c := max(ranges[i], ' '); c <= min(ranges[i+1], '~'); c++ {
			all = append(all, c)
		}
	}
	return string(all[random.IntN(len(all))])
}
