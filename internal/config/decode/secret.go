package decode

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
)

// A Secret is text that must not be shown. Its value is string(s); however it
// is formatted, logged or marshalled, it reads "[redacted]".
type Secret string

const redacted = "[redacted]"

// Format writes "[redacted]" whatever the verb. A String method alone would not
// do: fmt prints the raw value for a verb that does not fit a string.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Written returns a value for another program as a person wrote it: 1 and true
// are the texts "1" and "true". It may be secret and is never quoted.
func (v Value) Written() (string, bool) {
	if v.Kind != tree.Number && v.Kind != tree.Boolean && !v.Is(tree.Text) {
		return "", false
	}
	s, ok := v.Expanded()
	if ok && strings.ContainsRune(v.Text, 0) {
		v.Fail("holds a NUL character")
		return "", false
	}
	return s, ok
}

// secret reads a text that fits into a header and is never quoted.
func secret(to *Secret) Reader {
	return func(v Value) {
		s, ok := v.Written()
		if !ok {
			return
		}
		if err := check.HeaderValue(s); err != nil || s == "" {
			v.Fail("is empty, or holds a line break or another control character")
			return
		}
		*to = Secret(s)
	}
}

// Secrets reads names with values that are never quoted. Value may be nil; with it the case of
// names means nothing, as that of headers.
func Secrets(to *map[string]Secret, name, value Check) Reader {
	return func(v Value) {
		*to = map[string]Secret{}
		seen := map[string]bool{}
		for f := range v.Entries() {
			if err := name(f.Key); err != nil {
				f.At.Fail("%q %v", f.Key, err)
			}
			if value != nil {
				folded := strings.ToLower(f.Key)
				if seen[folded] {
					f.At.Fail("given twice, in different letter case")
				}
				seen[folded] = true
			}
			s, ok := f.Value.Written()
			if ok && value != nil && !f.Value.Unchecked() && !variables.Refers(s) {
				if err := value(s); err != nil {
					f.Value.Fail("%v", err)
				}
			}
			if ok {
				(*to)[f.Key] = Secret(s)
			}
		}
	}
}
