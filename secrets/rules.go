package secrets

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/wasmgate/wasmgate/internal/lazy"
)

//go:generate sh -c "go run -C gitleaks . rules >gitleaks.toml"

// gitleaksRules is the rule set of gitleaks.
//
//go:embed gitleaks.toml
var gitleaksRules []byte

// document is the part of gitleaks' configuration format that its own rule set uses.
type document struct {
	Rules     []ruleSource
	Allowlist listSource
}

type ruleSource struct {
	ID          string
	Description string
	Path        string
	Regex       string
	SecretGroup int
	Entropy     float64
	Keywords    []string
	Allowlists  []listSource
}

type listSource struct {
	Condition   string
	RegexTarget string
	Paths       []string
	Regexes     []string
	StopWords   []string
}

// A rule is one kind of secret. Its regular expressions are compiled when its first keyword is met:
// most rules never see theirs.
type rule struct {
	ruleSource
	order      int  // among all rules
	generic    bool // whatever looks like a secret, of no certain kind
	custom     bool // of the configuration; what gitleaks allows in general is not allowed for it
	path       func(string) bool
	allowlists []*allowlist

	once    sync.Once
	pattern *pattern
}

// A ruleSet is what all scanners share.
type ruleSet struct {
	rules    []*rule
	global   *allowlist // for all rules
	generic  *rule      // [RuleGeneric]
	keywords *matcher
	checks   []check

	everywhere []*rule // without keywords
}

// loadRules reads the rules when they are first asked for.
var loadRules = sync.OnceValues(readRules)

// readRules decodes gitleaks' rule set, without the rules that look at nothing
// but paths, and adds the rules of this package.
func readRules() (*ruleSet, error) {
	var doc document
	if err := toml.Unmarshal(gitleaksRules, &doc); err != nil {
		return nil, fmt.Errorf("the rule set of gitleaks cannot be read: %w", err)
	}
	set := &ruleSet{global: newAllowlist(doc.Allowlist), checks: checks()}
	for _, src := range append(doc.Rules, ownRules()...) {
		if src.Regex == "" {
			continue
		}
		set.rules = append(set.rules, newRule(src))
	}
	set.keywords = newMatcher(set.rules)
	for _, c := range set.checks {
		set.rules = append(set.rules, c.rule)
	}
	for i, r := range set.rules {
		r.order = i
	}
	i, err := set.index(RuleGeneric)
	if err != nil {
		return nil, err
	}
	set.generic = set.rules[i]
	return set, nil
}

func newRule(src ruleSource) *rule {
	if src.Keywords == nil {
		src.Keywords = keywordsOf(src.Regex)
	}
	r := &rule{ruleSource: src, generic: strings.Contains(src.ID, "generic")}
	r.path = matching(src.Path)
	for _, l := range src.Allowlists {
		r.allowlists = append(r.allowlists, newAllowlist(l))
	}
	return r
}

// index returns the place of a rule in the order.
func (s *ruleSet) index(id string) (int, error) {
	i := slices.IndexFunc(s.rules, func(r *rule) bool { return r.ID == id })
	if i < 0 {
		return 0, fmt.Errorf("there is no rule %q for secrets: use the id of a finding, such as %q", id, RuleGeneric)
	}
	return i, nil
}

// compiled returns the rule's expression and where to look for it.
func (r *rule) compiled() *pattern {
	r.once.Do(func() { r.pattern = newPattern(r.Regex, r.Keywords) })
	return r.pattern
}

// An allowlist says which matches are no secrets after all.
type allowlist struct {
	listSource
	regexes, paths func(string) bool
}

func newAllowlist(src listSource) *allowlist {
	a := &allowlist{listSource: src}
	a.regexes, a.paths = matching(union(src.Regexes)), matching(union(src.Paths))
	for i, w := range a.StopWords {
		a.StopWords[i] = strings.ToLower(w)
	}
	return a
}

// union joins expressions as the library does: a flag that one of them sets
// holds in all that follow, and the rules were tuned with that.
func union(regexes []string) string {
	if len(regexes) == 0 {
		return ""
	}
	return "(?:" + strings.Join(regexes, "|") + ")"
}

// matching returns what reports whether an expression matches a text. Nothing matches without an
// expression, and an empty text never does.
func matching(source string) func(string) bool {
	re := lazy.Regexp(source)
	return func(text string) bool { return source != "" && text != "" && re().MatchString(text) }
}

// allows reports whether a match is no secret. Paths alone allow nothing: they come from the sender
// of the text.
func (a *allowlist) allows(path, secret, match, line string) bool {
	target := secret
	switch a.RegexTarget {
	case "match":
		target = match
	case "line":
		target = line
	}
	if strings.EqualFold(a.Condition, "AND") {
		return (len(a.Paths) == 0 || a.paths(path)) &&
			(len(a.Regexes) == 0 || a.regexes(target)) &&
			(len(a.StopWords) == 0 || a.stops(secret))
	}
	return a.regexes(target) || a.stops(secret)
}

func (a *allowlist) stops(secret string) bool {
	secret = strings.ToLower(secret)
	for _, w := range a.StopWords {
		if strings.Contains(secret, w) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a character, counted as the library does: by
// characters, over a length in bytes.
func entropy(s string) float64 {
	var ascii [utf8.RuneSelf]int
	var other map[rune]int
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			ascii[r]++
		case other == nil:
			other = map[rune]int{r: 1}
		default:
			other[r]++
		}
	}
	var sum float64
	add := func(n int) {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	for _, n := range ascii {
		add(n)
	}
	for _, n := range other {
		add(n)
	}
	return sum
}
