package secrets

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
