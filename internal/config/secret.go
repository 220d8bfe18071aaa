package config

import (
	"fmt"
	"io"
	"log/slog"
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
