package secrets

import (
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/internal/lazy"
)

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

// A match is a finding in one text, before findings are merged.
type match struct {
	rule       *rule
	start, end int    // of what is to be redacted
	whole      [2]int // of all that the expression took
	secret     string // without the text around it, decoded
}
