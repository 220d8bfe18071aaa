package variables

import (
	"fmt"
	"regexp"
	"strings"
)

// variable matches what may stand between ${ and }: a name with an optional
// env: before it and an optional default after it.
var variable = regexp.MustCompile(`^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$`)

// Is reports whether a text may stand between ${ and }.
func Is(inner string) bool { return variable.MatchString(inner) }

// reference matches a secret that is named, between ${ and }, by where it is.
var reference = regexp.MustCompile(`^(?:exec:|file:|keyring:|vault:|op://).`)

// mark stands on both sides of a reference in an expanded text. No value of a configuration has it.
const mark = "\x00"

// IsReference reports whether a text between ${ and } names a secret by where it is.
func IsReference(inner string) bool { return reference.MatchString(inner) }

// Refers reports whether an expanded text holds references.
func Refers(s string) bool { return strings.Contains(s, mark) }

// Resolve returns an expanded text with its references replaced. The error is the first of read.
func Resolve(s string, read func(reference string) (string, error)) (string, error) {
	parts := strings.Split(s, mark)
	for i := 1; i < len(parts)-1; i += 2 {
		secret, err := read(parts[i])
		if err != nil {
			return "", err
		}
		parts[i] = secret
	}
	return strings.Join(parts, ""), nil
}

// Expand returns s with its variables replaced and $$ made a dollar. Any other
// dollar stands for itself. References stay, for [Resolve]. The errors name variables, never
// values.
func Expand(s string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:i])
		switch s = s[i+1:]; s[0] {
		case '$':
			b.WriteByte('$')
			s = s[1:]
		case '{':
			inner, rest, ok := strings.Cut(s[1:], "}")
			if !ok {
				return "", fmt.Errorf("${ has no closing }: write $${ for the characters themselves")
			}
			v, err := value(inner, lookup)
			if err != nil {
				return "", err
			}
			b.WriteString(v)
			s = rest
		default:
			b.WriteByte('$')
		}
	}
}

func value(inner string, lookup func(string) (string, bool)) (string, error) {
	if IsReference(inner) {
		return mark + inner + mark, nil
	}
	m := variable.FindStringSubmatch(inner)
	if m == nil {
		return "", fmt.Errorf("%q is not a variable: write ${NAME}, ${env:NAME} or ${NAME:-default}, and $${ for the characters themselves", "${"+inner+"}")
	}
	v, ok := lookup(m[1])
	if m[2] != "" && v == "" { // unset or empty, as in a shell
		return m[3], nil
	}
	if !ok {
		return "", &UnsetError{m[1]}
	}
	return v, nil
}

// An UnsetError says that a variable without a default is not set.
type UnsetError struct{ name string }

func (e *UnsetError) Error() string {
	return fmt.Sprintf("the environment variable %s is not set: set it, or write ${%s:-default}", e.name, e.name)
}

// Name makes the name of an environment variable of any text.
func Name(s string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(s)), "_")
	if name == "" || name[0] <= '9' {
		return "VALUE_" + name
	}
	return name
}
