package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// Files of the largest size that make a careless parser recurse until its stack
// ends, which no recover catches, or take quadratic time. They are problems.
func TestHostileFiles(t *testing.T) {
	unraced.Long(t)
	for _, size := range []int{1 << 15, 1<<20 - 16} { // below and beyond the bound on tokens
		if size > 1<<15 && testing.Short() {
			continue
		}
		t.Run(fmt.Sprint(size), func(t *testing.T) { hostileFiles(t, size) })
	}
}

func hostileFiles(t *testing.T, size int) {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	files := map[string]string{
		"brackets":               fill("["),
		"brackets, a line each":  fill("[\n"),
		"braces":                 fill("{a: "),
		"braces of braces":       fill("{"),
		"entries in entries":     fill("- "),
		"keys in keys":           fill("a: "),
		"complex keys":           fill("? "),
		"anchors":                fill("&a "),
		"anchors, a line each":   fill("&a\n"),
		"tags":                   fill("!a "),
		"tags in a flow":         "[" + fill("!a\n"),
		"anchors in a flow":      "[" + fill("&a\n"),
		"colons in a flow":       "{" + fill("a:\n"),
		"entries in a flow":      "[" + fill("-\n"),
		"documents":              fill("---\n"),
		"the same key":           fill("a: b\n"),
		"other keys":             otherKeys(size),
		"a list":                 fill("- a\n"),
		"a list in a flow":       "[" + fill("a,"),
		"aliases":                "a: &a 1\nb: [" + fill("*a,") + "]",
		"an open quote":          "a: \"" + fill("\\n"),
		"a literal":              "a: |\n" + fill(" x\n"),
		"a plain text":           "a: " + fill("x\n  "),
		"comments":               fill("# x\n") + "a: b",
		"carriage returns":       fill("\r") + "a: b",
		"steps to the right":     deep(size / 800),
		"percent":                fill("%a b\n"),
		"bars":                   fill("|\n"),
		"the opening of strings": fill("'"),
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			for _, as := range []string{"wasmgate.yaml", "mcp.json"} {
				var ps tree.Problems
				if _, err := config.Parse(as, []byte(file), options(t.TempDir())); !errors.As(err, &ps) {
					t.Errorf("%s: %v", as, err)
				}
			}
		})
	}
}

func otherKeys(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString("k" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + ": v\n")
	}
	return b.String()
}
