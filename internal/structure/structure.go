package structure

import (
	"bytes"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// maxText bounds a text that is read, in bytes: longer ones are pages.
	maxText = 256 << 10
	// maxDepth bounds how deep brackets are within each other, and maxBegin how far from the
	// beginning of a line its first word is: the reader's time grows with the square of
	// either.
	maxDepth = 32
	maxBegin = 64
)

// Of returns the document that a text is, and false if it is none: one mapping or sequence
// of YAML, without anchors, aliases, tags and keys that are not plain. JSON is YAML.
func Of(text string) (d gate.Doc, ok bool) {
	if !shallow(text) {
		return gate.Doc{}, false
	}
	defer func() {
		if recover() != nil { // the reader's, at a text that somebody has made for it
			d, ok = gate.Doc{}, false
		}
	}()
	if !plain(text) {
		return gate.Doc{}, false
	}
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return gate.Doc{}, false
	}
	d, err = gate.ParseDoc(bytes.TrimSpace(b))
	if err != nil || d.Kind() != doc.Object && d.Kind() != doc.Array {
		return gate.Doc{}, false
	}
	return d, true
}

// shallow reports whether a text is small and not deep.
func shallow(text string) bool {
	if len(text) > maxText || !strings.ContainsAny(text, ":-[{") {
		return false
	}
	depth := 0
	for line := range strings.Lines(text) {
		if len(line)-len(strings.TrimLeft(line, " -?")) > maxBegin {
			return false
		}
		for i := range len(line) {
			switch line[i] {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > maxDepth {
				return false
			}
		}
	}
	return true
}

// plain reports whether a text means what it says at each place: nothing in it stands for
// something elsewhere, and it is one document.
func plain(text string) bool {
	for _, t := range lexer.Tokenize(text) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType, token.DocumentHeaderType, token.DocumentEndType, token.MappingKeyType:
			return false
		}
	}
	return true
}
