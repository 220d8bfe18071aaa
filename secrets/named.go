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

// secretNames are the last words of names under which there is nothing but secrets.
var secretNames = []string{
	"password", "passwd", "passphrase", "passcode", "pwd", "pass phrase",
	"secret", "secret key", "secret access key", "client secret", "api secret",
	"api key", "apikey", "access key", "account key", "private key", "encryption key", "signing key",
	"access token", "auth token", "api token", "refresh token", "bearer token", "id token", "secret token",
	"authorization", "proxy authorization", "credential", "credentials",
}

// secretEnds are the last two letters of these names.
var secretEnds = func() map[[2]byte]bool {
	ends := make(map[[2]byte]bool)
	for _, s := range secretNames {
		ends[[2]byte{s[len(s)-2], s[len(s)-1]}] = true
	}
	return ends
}()

// namesSecret reports whether a name ends with words for a secret.
func namesSecret(name string) bool {
	if !endsLikeSecret(name) { // most names, which costs less than to read their words
		return false
	}
	words := words(name)
	for _, s := range secretNames {
		if before, ok := strings.CutSuffix(words, s); ok && (before == "" || before[len(before)-1] == ' ') {
			return true
		}
	}
	return false
}

// endsLikeSecret reports whether a name can end with words for a secret: by its last two
// letters, if they are of ASCII. In doubt it says yes.
func endsLikeSecret(name string) bool {
	for i := len(name) - 1; i > 0; i-- {
		switch c := name[i] | ' '; { // a letter in small
		case name[i] >= utf8.RuneSelf || name[i-1] >= utf8.RuneSelf:
			return true
		case c >= 'a' && c <= 'z':
			return secretEnds[[2]byte{name[i-1] | ' ', c}]
		case name[i] >= '0' && name[i] <= '9':
			return false
		}
	}
	return false
}

// words returns a name as words in small letters, with spaces between: apiKey,
// API_KEY, api-key and ApiKey are one.
func words(name string) string {
	var b strings.Builder
	var last rune
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
			if last == ' ' {
				continue
			}
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(last) || unicode.IsDigit(last) || last != ' ' && lowerFollows(name[i+utf8.RuneLen(r):])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.TrimSpace(b.String())
}

func lowerFollows(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
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

// harmless are the ends of names of what looks like a secret and is none: places in
// lists, and keys by which things are found and not opened.
var harmless = []string{
	"pagetoken", "nexttoken", "prevtoken", "previoustoken", "synctoken", "skiptoken", "continuationtoken", "continuetoken",
	"paginationtoken", "deltatoken", "changetoken", "startingtoken", "scrolltoken", "cursortoken", "cursor",
	"idempotencykey", "primarykey", "foreignkey", "partitionkey", "sortkey", "rowkey", "cachekey", "dedupkey", "deduplicationkey",
}

// harmlessName reports whether a name ends with one of these.
func harmlessName(name string) bool {
	name = strings.ReplaceAll(words(name), " ", "")
	return slices.ContainsFunc(harmless, func(end string) bool { return strings.HasSuffix(name, end) })
}

// harmlessMatch reports whether the name in front of a generic match is harmless.
func harmlessMatch(text string, m match) bool {
	if !m.rule.generic || m.whole[0] == m.start {
		return false
	}
	head := strings.TrimRight(text[m.whole[0]:m.start], " \t\n'\"`=:>?|,")
	return harmlessName(head[strings.LastIndexAny(head, " \t\n'\"`=:>?|,&$")+1:])
}
