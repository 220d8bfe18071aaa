package match

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Pattern is a literal, or the beginning of one and *. "*" matches every name; the zero
// Pattern matches the empty one alone.
type Pattern string

// Check says what is wrong with a pattern that a person has written.
func (p Pattern) Check() error {
	if p == "" {
		return errors.New("the pattern is empty")
	}
	if i := strings.IndexByte(string(p), '*'); i >= 0 && i < len(p)-1 {
		return fmt.Errorf("pattern %q: * is allowed only at the end", string(p))
	}
	return nil
}

// Cut returns what stands before the *, and whether there is one; else the literal.
func (p Pattern) Cut() (literal string, open bool) { return strings.CutSuffix(string(p), "*") }

// Matches reports whether a name is the literal, or begins as the pattern says.
func (p Pattern) Matches(name string) bool {
	literal, open := p.Cut()
	return name == string(p) || open && strings.HasPrefix(name, literal)
}

// Like returns names as patterns of its kind, for a suggestion: if it ends with *, as much of each
// as it has itself, and *.
func (p Pattern) Like(names []string) []string {
	prefix, open := p.Cut()
	if !open {
		return names
	}
	patterns := make([]string, len(names))
	for i, name := range names {
		patterns[i] = name[:min(len(prefix), len(name))] + "*"
	}
	return patterns
}

// Overlaps reports whether some name matches both.
func (p Pattern) Overlaps(other Pattern) bool {
	a, openA := p.Cut()
	b, openB := other.Cut()
	return a == b || openA && strings.HasPrefix(b, a) || openB && strings.HasPrefix(a, b)
}

// Any reports whether one of the patterns matches a name.
func Any[S ~string](patterns []S, name string) bool {
	return slices.ContainsFunc(patterns, func(p S) bool { return Pattern(p).Matches(name) })
}
