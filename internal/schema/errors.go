package schema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of messages. They suit a model that is to fix its call, and a log.
const (
	maxMessage = 300 // bytes
	maxName    = 80  // bytes of a name or a value of the schema, before quoting
)

// KeywordError is the error of a schema with one keyword that cannot be judged: its value is not
// what the meta-schema says, it is a pattern that RE2 does not have, or it refers to what is not
// there.
type KeywordError struct {
	path []string
	err  error
}

// Error returns the JSON Pointer of the keyword, and what is wrong with it.
func (e *KeywordError) Error() string {
	if len(e.path) == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("%s: %v", printable(pointerTo(e.path), maxMessage), e.err)
}

func keywordError(path []string, format string, args ...any) error {
	return &KeywordError{path, fmt.Errorf(format, args...)}
}

// at returns an error that names a place in the schema.
func at(pointer, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if pointer == "" {
		return err
	}
	return fmt.Errorf("%s: %w", printable(pointer, maxMessage), err)
}

// quote shows a name. Characters that do not print are escaped.
func quote(s string) string { return strconv.Quote(cut(s, maxName)) }

// printable returns s cut to n bytes, with characters that do not print
// replaced.
func printable(s string, n int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, cut(s, n-len("...")))
}

// cut returns s, or the first n bytes of it and an ellipsis.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
