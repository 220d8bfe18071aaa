package secrets

import (
	"net/url"
	"strings"

	"github.com/wasmgate/wasmgate/internal/lazy"
)

// RuleURL is the rule for passwords and tokens in the user information of URLs.
const RuleURL = "url-credentials"

// maxUserInfo bounds the bytes between "//" and "@" of a URL.
const maxUserInfo = 512

// urlCredentials finds URLs with a password, or with a token in place of the user's name.
func urlCredentials(all []match, r *rule, text string) []match {
	for at := 0; ; {
		i := strings.Index(text[at:], "://")
		if i < 0 {
			return all
		}
		from := at + i + len("://")
		if at = from; i == 0 || !isWord(text[from-len("://")-1]) {
			continue
		}
		end := userInfoEnd(text[from:min(len(text), from+maxUserInfo)])
		if end < 0 {
			continue
		}
		host := hostOf(text[from+end+1:])
		whole := [2]int{from - len("x://"), from + end + 1 + len(host)}
		user, password, _ := strings.Cut(text[from:from+end], ":")
		switch {
		case isPassword(user, password, host):
			from += len(user) + 1
			user = password
		case !isUserToken(user):
			continue
		}
		to := from + len(user)
		all = append(all, match{rule: r, start: from, end: to, whole: whole, secret: user})
	}
}

// userInfoEnd returns where the "@" behind user information is, or -1. A slash belongs to a
// password if only characters of base64 follow it: many write such a password unescaped.
func userInfoEnd(text string) int {
	end, colon := -1, -1
	for i := range len(text) {
		switch c := text[i]; {
		case c == '@':
			end = i
		case c == ':' && colon < 0:
			colon = i
		case c == '/' && end < 0 && colon >= 0:
			rest := strings.TrimLeft(text[i:], base64Characters)
			if at := len(text) - len(rest); strings.HasPrefix(rest, "@") && isRandom(text[colon+1:at]) {
				return at
			}
			return -1
		case c <= ' ' || c == 0x7f || strings.IndexByte("/?#\"'<>`\\", c) >= 0:
			return end
		}
	}
	return end
}

const base64Characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

// hostOf returns the host at the beginning of a text, without its port.
func hostOf(text string) string {
	if strings.HasPrefix(text, "[") {
		host, _, _ := strings.Cut(text[1:], "]")
		return strings.ToLower(host[:min(len(host), 64)])
	}
	n := 0
	for n < len(text) && n < 255 && (isWord(text[n]) || text[n] == '.' || text[n] == '-') {
		n++
	}
	return strings.ToLower(text[:n])
}

var (
	// templates are values that a program fills in.
	templates = lazy.Regexp(`^[$%:]?[{(\[]|^\$|^%[a-zA-Z]?$|^%.*%$|[$#%]\{|\{\{|\.\.\.|…|^[*•]+$`)
	// placeholders are values that a reader fills in, and the passwords of manuals.
	placeholders = lazy.Regexp(`^(?:a|abc|access|account|admin|administrator|an|and|anonymous|api|app|auth|bar|basic|baz|blank|change|changeit|clave|client|complex|config|contrasena|credentials?|data|database|db|default|demo|dev|difficult|dummy|empty|enter|env|example|fake|fill|for|foo|ftp|geheim|git|github|gitlab|goes|good|guest|hard|here|hidden|host|hunter|id|in|insert|into|is|it|key|letmein|local|login|long|mariadb|masked|me|mongo|mongodb|motdepasse|my|mypass|mysql|name|new|nil|none|not|null|oauth|of|old|or|our|p|pass|passphrase|passwd|password|passwort|phrase|placeholder|port|postgres|postgresql|pswd|put|pw|pwd|pword|qux|quux|qwerty|rabbitmq|random|real|redacted|redis|removed|replace|root|safe|sample|secret|secreto|secure|senha|server|service|shared|some|someone|something|string|strong|super|sys|test|testing|text|the|this|tiger|to|todo|token|undefined|unused|used|user|username|value|var|variable|very|wachtwoord|weak|with|word|x+|your)+$`)
	// telling are words that no random password has.
	telling = lazy.Regexp(`passw|secret|change|example|placeh|redact|admin|token|sample|dummy|hunter|qwerty|letmein`)
	// exampleHosts are hosts of manuals and of the reader's machine.
	exampleHosts = lazy.Regexp(`^$|(?:^|\.)(?:localhost|example|test|invalid)(?:$|\.)|^(?:127\.|0\.0\.0\.0$|::1$|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|host\.docker\.internal$)|^(?:my|your|the|some)?[-_]?(?:host|hostname|server|domain|site|company|address|ip|db[-_]?host)(?:name)?(?:\.(?:com|net|org|tld|io))?$`)
	leet         = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")
)

// isPassword reports whether a URL's password is one, and no placeholder. With a host of
// manuals only what looks random is a password.
func isPassword(user, password, host string) bool {
	if templates().MatchString(password) {
		return false
	}
	if plain, err := url.PathUnescape(password); err == nil {
		password = plain
	}
	switch {
	case len(password) < 4 || strings.HasPrefix(host, "sha256") || strings.HasPrefix(host, "sha512"):
		return false
	case strings.Trim(password, password[:1]) == "" || strings.EqualFold(user, password) || strings.HasPrefix("1234567890", password):
		return false
	case len(password) <= 5 && strings.Trim(password, "0123456789") == "": // a port
		return false
	case placeholders().MatchString(lettersOf(password)) || placeholders().MatchString(lettersOf(leet.Replace(password))):
		return false
	}
	return isRandom(password) || !exampleHosts().MatchString(host)
}

// isRandom reports whether a password looks as a generator makes it.
func isRandom(password string) bool {
	const least = 12
	letters, digits := lettersOf(password), strings.ContainsAny(password, "0123456789")
	mixed := letters != "" && (digits || strings.ToLower(password) != password && strings.ToUpper(password) != password)
	return len(password) >= least && mixed && entropy(password) > 3 && !telling().MatchString(letters) && !telling().MatchString(lettersOf(leet.Replace(password)))
}

// lettersOf returns the letters of a password, in small letters.
func lettersOf(password string) string {
	return strings.Map(func(c rune) rune {
		if c < 'a' || c > 'z' {
			return -1
		}
		return c
	}, strings.ToLower(password))
}

// isUserToken reports whether a user's name is a token: long, and of capitals, small
// letters and digits.
func isUserToken(user string) bool {
	const least = 20
	if len(user) < least || strings.ToLower(user) == user || strings.ToUpper(user) == user || !isRandom(user) || !strings.ContainsAny(user, "0123456789") {
		return false
	}
	for i := range len(user) {
		if !isWord(user[i]) {
			return false
		}
	}
	return true
}
