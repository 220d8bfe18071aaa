package secrets

import (
	"regexp/syntax"
	"strings"
)

// keywordsOf returns words such that every match of an expression has one of them: the longest that
// can be found, or none.
func keywordsOf(source string) []string {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil
	}
	return requiredWords(flatten(tree))
}

func requiredWords(parts []*syntax.Regexp) (best []string) {
	take := func(words []string) {
		if shortestWord(words) > shortestWord(best) {
			best = words
		}
	}
	for i := range parts {
		run := []string{""}
		for _, p := range parts[i:] {
			var ok bool
			if run, ok = product(run, p); !ok {
				break
			}
			take(run)
		}
		if parts[i].Op == syntax.OpAlternate {
			var all []string
			for _, branch := range parts[i].Sub {
				words := requiredWords(flatten(branch))
				if words == nil {
					all = nil
					break
				}
				all = append(all, words...)
			}
			take(all)
		}
	}
	return best
}

// shortestWord returns the bytes of the shortest word, or one less than a keyword needs: for
// words with less, and with letters outside ASCII, whose capitals a matcher does not know.
func shortestWord(words []string) int {
	const least = 2
	n := least - 1
	for i, w := range words {
		if len(w) < least || strings.ContainsFunc(w, func(r rune) bool { return r > 0x7e }) {
			return least - 1
		}
		if i == 0 || len(w) < n {
			n = len(w)
		}
	}
	return n
}
