package gate

import "github.com/wasmgate/wasmgate/gate/provenance"

// A Sanitizer makes text safe to show to a model.
type Sanitizer interface {
	// Sanitize returns the text without what could hurt, and what it found. It
	// must be idempotent, and must return text itself if it changed nothing.
	Sanitize(t Text) (clean string, found []Finding)
}

// Text is one decoded string that a server wrote.
type Text struct {
	Server  string
	Tool    string // qualified; "" for texts that are no tool's
	Profile string // asked for by a decision; "" leaves the choice to the sanitizer
	Kind    provenance.TextKind
	MIME    string // "" if unknown
	Text    string
}

// A pieceSanitizer is a [Sanitizer] that knows what texts make that a client shows side
// by side, or in which it shows quotes and braces between them.
type pieceSanitizer interface {
	Sanitizer
	// Open reports whether a sanitized text may become more than text next to others.
	Open(t Text) bool
	// Inert neutralizes what acts in a text whose parts are sanitized. JSON stays JSON of the same
	// shape.
	Inert(t Text) (clean string, found []Finding)
	// Together neutralizes what sanitized texts make one after the other. It returns as many, and
	// texts itself if nothing changes.
	Together(t Text, texts []string) (clean []string, found []Finding)
}
