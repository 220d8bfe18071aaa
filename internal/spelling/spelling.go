package spelling

import (
	"errors"
	"path"
	"regexp"
	"strings"
)

var (
	originPattern = regexp.MustCompile(`^https?://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$`)
	drivePattern  = regexp.MustCompile(`^[A-Za-z]:/`)
)

// Origin accepts only the one way in which an origin is written (RFC 6454,
// section 6.2): names are compared as they are.
func Origin(s string) error {
	own := strings.HasPrefix(s, "https:") && strings.HasSuffix(s, ":443") || strings.HasPrefix(s, "http:") && strings.HasSuffix(s, ":80")
	if own || !originPattern.MatchString(s) {
		return errors.New("expected an origin such as https://api.example.com, in lower case and without the scheme's own port")
	}
	return nil
}

// Dir accepts an absolute directory, written with / and in one way.
func Dir(s string) error {
	if path.Clean(s) != s || s[0] != '/' && !drivePattern.MatchString(s) {
		return errors.New("expected a directory such as /srv/docs, absolute and without . or .. in it")
	}
	return nil
}

// Scope accepts what can be one of several scopes (RFC 6749, section 3.3).
func Scope(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return errors.New(`expected a scope: printable ASCII without spaces, " and \`)
	}
	return nil
}

// Secret accepts the name of a secret.
func Secret(s string) error {
	if s == "" {
		return errors.New("expected the name of a secret")
	}
	return nil
}
