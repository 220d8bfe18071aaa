package secrets

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/apikey"
)

// RuleGatewayKey is the rule for API keys of wasmgate, which prove themselves by their
// checksum.
const RuleGatewayKey = "wasmgate-key"

func gatewayKeys(all []match, r *rule, text string) []match {
	for at := 0; ; {
		i := strings.Index(text[at:], apikey.Prefix)
		if i < 0 {
			return all
		}
		from := at + i
		at = from + len(apikey.Prefix)
		if to := from + apikey.Size; to <= len(text) {
			if _, ok := apikey.ID(text[from:to]); ok {
				all = append(all, match{rule: r, start: from, end: to, whole: [2]int{from, to}, secret: text[from:to]})
				at = to
			}
		}
	}
}

// A Rule is a kind of secret of one's own. If the expression has groups, the first that
// matches something is the secret.
type Rule struct {
	ID     string // small letters, digits and hyphens; no rule of this package has it
	Regexp string
}

var ruleID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// with returns the set with more rules.
func (s *ruleSet) with(more []Rule) (*ruleSet, error) {
	set := *s
	set.rules = slices.Clone(s.rules)
	for _, m := range more {
		re, err := regexp.Compile(m.Regexp)
		switch {
		case !ruleID.MatchString(m.ID):
			return nil, fmt.Errorf("rule %q for secrets: an id has small letters, digits and hyphens, 64 at most", m.ID)
		case slices.ContainsFunc(set.rules, func(r *rule) bool { return r.ID == m.ID }):
			return nil, fmt.Errorf("rule %q for secrets: there is a rule with this id already; choose another", m.ID)
		case err != nil:
			return nil, fmt.Errorf("rule %q for secrets: %w", m.ID, err)
		case re.MatchString(""):
			return nil, fmt.Errorf("rule %q for secrets: the expression matches an empty text; let it ask for a character at least", m.ID)
		}
		r := newRule(ruleSource{ID: m.ID, Description: "Found a secret of a rule of the configuration.", Regex: m.Regexp})
		r.order, r.custom = len(set.rules), true
		set.rules = append(set.rules, r)
		if len(r.Keywords) == 0 {
			set.everywhere = append(set.everywhere, r)
		}
	}
	set.keywords = newMatcher(set.rules)
	return &set, nil
}

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
