package doc

import (
	"fmt"
	"strings"
)

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
