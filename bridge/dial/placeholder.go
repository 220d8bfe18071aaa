package dial

import (
	"errors"
	"strings"
)

const (
	placeholderStart = "{{secret:"
	placeholderEnd   = "}}"

	// maxSecretName bounds a name in bytes: it takes the value's place in answers.
	maxSecretName = 64
)

func isSecretName(s string) bool {
	return s != "" && len(s) <= maxSecretName &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// fill replaces each placeholder in the value of a header by what secret returns for its name. The
// inserted value is not searched again.
func fill(value string, secret func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, placeholderStart)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, placeholderEnd)
		if !closed || !isSecretName(name) {
			return "", errors.New("a placeholder of a secret is written {{secret:NAME}}")
		}
		v, err := secret(name)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
		value = after
	}
}
