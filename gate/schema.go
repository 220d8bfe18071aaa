package gate

import (
	"fmt"
	"strings"
)

// A Schema checks a document.
type Schema interface {
	// Validate returns nil, [Violations], or another error if the check itself
	// could not be done. It is called concurrently.
	Validate(Doc) error
}

// A Coercer is a [Schema] that can turn what models write into what it says, where that
// loses nothing.
type Coercer interface {
	// Coerce returns the document with what it changed, and the JSON Pointers of that.
	Coerce(Doc) (Doc, []string)
	// Takes shows in a line what would be valid.
	Takes() string
}

// A Violation is one place at which a document breaks its schema.
type Violation struct {
	Pointer string // JSON Pointer into the document
	Message string // what is wrong there; names no value of the document
}

// Violations are all places at which a document breaks its schema.
type Violations []Violation

// Error names every violation with its place.
func (v Violations) Error() string {
	var b strings.Builder
	for i, x := range v {
		if i > 0 {
			b.WriteString("; ")
		}
		pointer := x.Pointer
		if pointer == "" {
			pointer = "(root)"
		}
		fmt.Fprintf(&b, "%s: %s", pointer, x.Message)
	}
	return b.String()
}

// An InputMode says how arguments are held against a tool's input schema. The zero value
// coerces.
type InputMode string

// The modes.
const (
	// CoerceInput turns what loses nothing into what the schema says, and refuses what
	// breaks it all the same.
	CoerceInput InputMode = "coerce"
	// EnforceInput refuses what breaks the schema as it was sent.
	EnforceInput InputMode = "enforce"
	// WarnInput passes arguments as they were sent, with a finding if they break the schema.
	WarnInput InputMode = "warn"
)
