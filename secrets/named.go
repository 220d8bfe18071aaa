package secrets

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FindNamed is [Scanner.FindIn] for a text under a name: the value of a member of a JSON object, of
// a variable, of a header. The name may begin with that of the object that contains it:
// adafruit/api_key. It finds what the rules find in the text, and in an assignment of the text to
// the name; and under a name that says so, a text that looks like a password is a finding of
// [RuleGeneric]. Places of findings are those in the text alone.
func (s *Scanner) FindNamed(path, name, text string) []Finding {
	return s.merge(s.named(s.scan(path, text, 0), path, name, text))
}

// RedactNamed is [Scanner.RedactIn] for a text under a name, as in [Scanner.FindNamed].
func (s *Scanner) RedactNamed(path, name, text string) (clean string, found []Finding) {
	return redact(text, func(text string) []Finding { return s.FindNamed(path, name, text) })
}

// Bounds of what a name is looked at for.
const (
	maxNamed = 8 << 10 // bytes of a text; what is longer is a document, which has names of its own
	maxName  = 100     // bytes of a name; of a longer one its end
)

// named appends the secrets that are found because of the name of a text.
func (s *Scanner) named(all []match, path, name, text string) []match {
	if text == "" || len(text) > maxNamed {
		return all
	}
	if name = s.telling(lastBytes(name, maxName)); name == "" {
		return all
	}
	start, value := scheme(text)
	prefix := name + ` = "`
	composed := prefix + value + `"`
	for _, m := range s.search(path, composed) {
		if m.end <= len(prefix) || s.allowed(path, m) || harmlessMatch(composed, m) {
			continue
		}
		m.start, m.end = start+max(0, m.start-len(prefix)), start+min(m.end-len(prefix), len(value))
		m.whole = [2]int{m.start, m.end}
		if m.end > m.start {
			all = append(all, m)
		}
	}
	m := match{rule: s.generic, start: start, end: len(text), whole: [2]int{start, len(text)}, secret: value}
	if !s.skip[s.generic.order] && namesSecret(name) && looksSecret(value) && !s.allowed(path, m) {
		all = append(all, m)
	}
	return all
}

// telling returns the part of a name that says something about the value under it, or "". It is
// what follows the last slash; the member before that counts if this is a word for secrets:
// adafruit/api_key is a key of a certain kind, heroku/id is none.
func (s *Scanner) telling(name string) string {
	own := name[strings.LastIndexByte(name, '/')+1:]
	of := keywordsOfNone
	s.keywords.each(own, func(w *word, _ int) {
		of = max(of, keywordsOfSome)
		if slices.Contains(w.rules, s.generic) {
			of = keywordsOfAll
		}
	})
	switch {
	case of == keywordsOfAll || namesSecret(own):
		return strings.ReplaceAll(name, "/", ".")
	case of == keywordsOfSome:
		return own
	}
	return ""
}

// Kinds of rules that the keywords in a name are of.
const (
	keywordsOfNone = iota
	keywordsOfSome // of a certain kind
	keywordsOfAll  // of any kind
)

// scheme cuts off the word for how a credential is used (RFC 9110, section 11.6.2).
func scheme(text string) (start int, credential string) {
	for _, word := range [...]string{"Bearer ", "Basic ", "Token ", "ApiKey "} {
		if len(text) > len(word) && strings.EqualFold(text[:len(word)], word) {
			return len(word), text[len(word):]
		}
	}
	return 0, text
}

// lastBytes returns the end of s, of at most n bytes.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for s != "" && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// Bounds of what is taken for a password by its name alone.
const (
	minPassword = 6
	maxPassword = 512
)

// looksSecret reports whether a text under a secret's name may be one: a single word
// that is no placeholder, and no word of a form or a document.
func looksSecret(text string) bool {
	if len(text) < minPassword || len(text) > maxPassword || strings.ContainsFunc(text, unicode.IsSpace) {
		return false
	}
	if strings.ContainsAny(text[:1], "<${[%*") || strings.Contains(text, "://") || strings.Trim(text, text[:1]) == "" {
		return false
	}
	other := strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' && r != '-' && r != '.' })
	return other || entropy(text) > 3.5
}
