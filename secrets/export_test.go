package secrets

import (
	"maps"
	"slices"
	"strings"
)

// Raw is what a rule's expression took, before findings are merged.
type Raw struct{ Rule, Match, Secret string }

// Raws returns what the rules find in a text, without checks and decoding.
func (s *Scanner) Raws(path, text string) []Raw {
	var out []Raw
	for _, m := range s.search(path, text) {
		out = append(out, Raw{m.rule.ID, text[m.whole[0]:m.whole[1]], m.secret})
	}
	return out
}

// CompileAll compiles the expressions of all rules and allowlists.
func (s *Scanner) CompileAll() {
	lists := []*allowlist{s.global}
	for _, r := range s.rules {
		r.compiled()
		if r.path != nil {
			r.path("x")
		}
		lists = append(lists, r.allowlists...)
	}
	for _, l := range lists {
		l.regexes("x")
		l.paths("x")
	}
}

// CompileAfresh reads and compiles all rules again.
func CompileAfresh() error {
	set, err := readRules()
	if err == nil {
		(&Scanner{ruleSet: set}).CompileAll()
	}
	return err
}

// ReadRules reads the rules again.
func ReadRules() error {
	_, err := readRules()
	return err
}

// OwnRules returns the expressions of the package's own rules by their ids.
func OwnRules() map[string]string {
	own := map[string]string{}
	for _, r := range ownRules() {
		own[r.ID] = r.Regex
	}
	return own
}

// KeywordsOf is keywordsOf.
func KeywordsOf(source string) []string { return keywordsOf(source) }

// Searched returns how many bytes of a text the expressions go through without a match, by rule, of
// those that take words in front of their keyword, which cost most; and how many bytes were looked
// at to find these.
func (s *Scanner) Searched(text string) (byRule map[string]int, looked int) {
	p := new(pass)
	p.reset("", text, len(s.rules))
	s.keywords.each(text, func(w *word, start int) {
		for _, r := range w.rules {
			p.keyword(r, start)
		}
	})
	byRule = make(map[string]int)
	if len(p.windows) == 0 {
		return byRule, p.looked
	}
	for _, w := range mergeWindows(p.windows) {
		if c := w.rule.compiled(); len(c.anchors) > 0 && slices.ContainsFunc(c.anchors[0].before, func(p piece) bool { return p.max > 0 }) && !c.re.MatchString(text[w.from:min(w.to, w.from+1<<10)]) {
			byRule[w.rule.ID] += w.to - w.from
		}
	}
	return byRule, p.looked
}

// Keywords returns the keywords of all rules.
func (s *Scanner) Keywords() []string {
	seen := make(map[string]bool)
	for _, r := range s.rules {
		for _, k := range r.Keywords {
			seen[strings.ToLower(k)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
