package scan

import "fmt"

// A Severity says how much a finding is worth a person's time. The zero Severity
// is none.
type Severity int

// The severities. High is rare in harmless definitions, at most one in a hundred;
// Medium has a harmless explanation now and then, Low mostly.
const (
	Low Severity = iota + 1
	Medium
	High
)

var severities = map[Severity]string{Low: "low", Medium: "medium", High: "high"}

// ParseSeverity reads low, medium or high.
func ParseSeverity(s string) (Severity, error) {
	for severity, name := range severities {
		if s == name {
			return severity, nil
		}
	}
	return 0, fmt.Errorf("%q must be low, medium or high", s)
}

// String returns low, medium, high, or none.
func (s Severity) String() string {
	if name, ok := severities[s]; ok {
		return name
	}
	return "none"
}

// MarshalText returns what String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Severity) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSeverity(string(b))
	return err
}
