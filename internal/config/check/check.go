package check

import (
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Plain accepts a text with something in it, without control characters.
func Plain(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("holds a control character")
	}
	return nil
}

// Matches returns a check against re, which what describes.
func Matches(re *regexp.Regexp, what string) func(string) error {
	return func(s string) error {
		if !re.MatchString(s) {
			return errors.New("is not " + what)
		}
		return nil
	}
}

// Among returns a check for one of the words.
func Among(words []string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New("is not one of " + strings.Join(words, ", "))
		}
		return nil
	}
}

// Exists accepts a path that is there, since a policy that is not found would not deny.
func Exists(path string) error {
	if _, err := os.Stat(path); err != nil {
		return errors.New("does not exist")
	}
	return nil
}

// ToolWords says what [Tools] accepts.
const ToolWords = "the name of a tool, or its beginning and *"

// Tools accepts a pattern of tools' names.
var Tools = Matches(regexp.MustCompile(`^[A-Za-z0-9_-]*\*?$`), ToolWords)

// Pointer accepts a JSON Pointer that leads somewhere.
func Pointer(s string) error {
	if !strings.HasPrefix(s, "/") {
		return errors.New("is not a JSON Pointer to an argument, such as /to")
	}
	return nil
}

// Regexp accepts a regular expression of RE2.
func Regexp(s string) error {
	if _, err := regexp.Compile(s); err != nil {
		return errors.New("is not a regular expression of RE2")
	}
	return nil
}

// Variable accepts the name of an environment variable.
func Variable(s string) error {
	if s == "" || strings.ContainsAny(s, "=\x00") {
		return errors.New("is not a name of an environment variable: it is empty, or has = or a NUL character")
	}
	return nil
}

// GuestPath accepts what a module can call a folder: a path, or where it is itself.
func GuestPath(s string) error {
	if s != "." && (!strings.HasPrefix(s, "/") || path.Clean(s) != s) {
		return errors.New("is neither an absolute path without dots, such as /data, nor \".\"")
	}
	return nil
}

var secretPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// SecretName accepts the name of a secret that modules use.
func SecretName(s string) error {
	if !secretPattern.MatchString(s) {
		return errors.New("is not a name of a secret: use letters, digits, _ and -, such as API")
	}
	return nil
}
