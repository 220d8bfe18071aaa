package provenance

import (
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// schemaWords are member names of definitions that every server has.
var schemaWords = strings.Fields(`name title description uri uriTemplate mimeType size type annotations _meta icons src sizes arguments required
	inputSchema outputSchema properties items enum const default examples format pattern anyOf oneOf allOf additionalProperties minimum maximum $schema $ref $defs definitions
	readOnlyHint destructiveHint idempotentHint openWorldHint audience priority lastModified`)

// NewShown returns what a listing of definitions shows; the flag says whether a definition was
// pinned.
func NewShown(definitions iter.Seq2[doc.Doc, bool]) *Shown {
	n := notes{met: make(map[uint64]Source), from: FromUntrusted, room: maxShown, of: new(Reading)}
	for d, pinned := range definitions {
		n.listed(d, pinned)
	}
	return &Shown{n.met, n.room < 0}
}

// listed takes the values in a definition, whatever they are called. Of one that is pinned these
// are the addresses alone: its words are those of a task, and somebody has looked at them, or
// they were there from the beginning.
func (n *notes) listed(d doc.Doc, pinned bool) {
	for e := range d.Elements() {
		n.listed(e, pinned)
	}
	for name, v := range d.Members() {
		if !slices.Contains(schemaWords, name) {
			n.listedText(name, pinned)
		}
		if name != "type" && name != "$schema" {
			n.listed(v, pinned)
		}
	}
	if kind := d.Kind(); kind == doc.String || kind == doc.Number {
		n.listedText(TextOf(d), pinned)
	}
}

// listedText takes a text as it is, and as the parts of a URI or a name: a client can take the
// address out of x://a@b.example, to_a@b.example or iban:DE89... .
func (n *notes) listedText(text string, pinned bool) {
	for _, t := range [...]string{text, apart(text)} {
		if pinned {
			n.addresses(t)
		} else {
			n.text(t, 0)
		}
	}
	for local, host := range mailboxes(apart(text)) {
		for i, mark := range local {
			if strings.ContainsRune(".-+", mark) {
				n.addresses(local[i+1:] + "@" + host)
			}
		}
	}
}

// apart returns a text with its parts as words of their own.
func apart(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("@.+-", r) {
			return r
		}
		return ' '
	}, text)
}

// mailboxes yields the two parts of each word with an @.
func mailboxes(text string) iter.Seq2[string, string] {
	return func(yield func(local, host string) bool) {
		for word := range strings.FieldsSeq(text) {
			if local, host, ok := strings.Cut(word, "@"); ok && !yield(local, host) {
				return
			}
		}
	}
}
