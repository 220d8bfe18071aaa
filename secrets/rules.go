package secrets

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/pelletier/go-toml/v2"
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

// RuleGeneric is the rule for whatever looks like a secret behind a word like
// key, token or password.
const RuleGeneric = "generic-api-key"

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

// index returns the place of a rule in the order.
func (s *ruleSet) index(id string) (int, error) {
	i := slices.IndexFunc(s.rules, func(r *rule) bool { return r.ID == id })
	if i < 0 {
		return 0, fmt.Errorf("there is no rule %q for secrets: use the id of a finding, such as %q", id, RuleGeneric)
	}
	return i, nil
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
