package dial

import (
	"fmt"
	"log/slog"
	"strings"
)

const (
	// minSecret is the shortest value in bytes. A shorter one would be found in
	// answers by chance, and a tool could find it out by guessing: what is
	// scrubbed from an echo was guessed right.
	minSecret = 8
	// maxSecret bounds a value in bytes: servers refuse longer headers.
	maxSecret = 4 << 10
)

// A Secret is a value that the host puts into headers for one origin. No tool holds it: a tool
// writes {{secret:NAME}}. Printing or logging a Secret shows only its name, and encoding it shows
// nothing. The zero Secret is of no use.
type Secret struct {
	name   string
	origin origin
	open   func() sealed // a function: fmt prints unexported fields, and behind pointers too with some verbs
}

type sealed struct {
	value string
	forms []form
}

// NewSecret returns the secret with that name and value, bound to an origin. The value has 8 to
// 4096 bytes, all of them allowed in a header.
func NewSecret(name, value, origin string) (Secret, error) {
	o, err := parseOrigin(origin)
	switch {
	case !isSecretName(name):
		return Secret{}, fmt.Errorf("secret %q: a name is 1 to %d of A-Z a-z 0-9 _ -", short(name), maxSecretName)
	case err != nil:
		return Secret{}, fmt.Errorf("secret %s: %w", name, err)
	case len(value) < minSecret || len(value) > maxSecret:
		return Secret{}, fmt.Errorf("secret %s: its value has %d bytes; %d to %d are possible", name, len(value), minSecret, maxSecret)
	case checkValue(value) != nil || strings.TrimSpace(value) != value:
		return Secret{}, fmt.Errorf("secret %s: its value has spaces at an end, or a control character (a newline from a file?)", name)
	}
	s := sealed{value, newForms(value)}
	return Secret{name, o, func() sealed { return s }}, nil
}

// Name returns the name.
func (s Secret) Name() string { return s.name }

// String returns the placeholder.
func (s Secret) String() string { return placeholderStart + s.name + placeholderEnd }

// LogValue returns the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
