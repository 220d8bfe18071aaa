package secrets

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
		r.path.matches("x")
		lists = append(lists, r.allowlists...)
	}
	for _, l := range lists {
		l.regexes.matches("x")
		l.paths.matches("x")
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
