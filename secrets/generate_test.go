package secrets_test

import (
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// source is a rule as gitleaks has it, read without the code that is tested.
type source struct {
	ID, Regex, Path string
	Keywords        []string
	Allowlists      []struct{ Regexes, StopWords []string }
	tree            *syntax.Regexp
}

// sources returns the rules of gitleaks that look at text.
func sources(t testing.TB) []source {
	t.Helper()
	rules, err := os.ReadFile("gitleaks.toml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Rules []source }
	if err := toml.Unmarshal(rules, &doc); err != nil {
		t.Fatal(err)
	}
	var out []source
	for _, r := range doc.Rules {
		if r.Regex == "" {
			continue
		}
		tree, err := syntax.Parse(r.Regex, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		r.tree = tree
		out = append(out, r)
	}
	if len(out) < 200 {
		t.Fatalf("only %d rules", len(out))
	}
	return out
}

// secret makes a text that an expression matches.
func secret(r *rand.Rand, e *syntax.Regexp) string {
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		return string(member(r, e.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "." // what is meant by most that are not repeated
	case syntax.OpQuest:
		return repeated(r, e.Sub[0], r.IntN(2))
	case syntax.OpStar:
		return repeated(r, e.Sub[0], r.IntN(20))
	case syntax.OpPlus:
		return repeated(r, e.Sub[0], 1+r.IntN(20))
	case syntax.OpRepeat:
		high := e.Max
		if high < 0 {
			high = e.Min + 20
		}
		return repeated(r, e.Sub[0], e.Min+r.IntN(high-e.Min+1))
	case syntax.OpAlternate:
		return secret(r, e.Sub[r.IntN(len(e.Sub))])
	}
	var b strings.Builder
	for _, s := range e.Sub {
		b.WriteString(secret(r, s))
	}
	return b.String()
}

func repeated(r *rand.Rand, e *syntax.Regexp, n int) string {
	var b strings.Builder
	for range n {
		if e.Op == syntax.OpAnyChar || e.Op == syntax.OpAnyCharNotNL {
			b.WriteByte(byte('!' + r.IntN('~'-'!')))
			continue
		}
		b.WriteString(secret(r, e))
	}
	return b.String()
}

// member picks from a class what can be typed, if there is any.
func member(r *rand.Rand, ranges []rune) rune {
	var all []rune
	for i := 0; i < len(ranges); i += 2 {
		for c := ranges[i]; c <= ranges[i+1] && c < utf8.RuneSelf; c++ {
			if c >= ' ' && c < 0x7f {
				all = append(all, c)
			}
		}
	}
	if len(all) == 0 {
		return ranges[0]
	}
	return all[r.IntN(len(all))]
}
