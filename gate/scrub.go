package gate

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// metaPrefix begins the names of _meta that are the gate's. A server that uses
// one would speak in the gate's name.
const metaPrefix = "io.github.wasmgate/"

// scrub sanitizes documents and collects what it finds.
type scrub struct {
	sanitizer Sanitizer
	text      Text
	found     []Finding
	own       bool // what is in _meta in the gate's name is the gate's
	// secrets takes secrets out of texts; nil leaves them.
	secrets Secrets
	strict  bool           // what has a secret must not be passed on at all
	secret  bool           // one was taken out, whether or not it is among those found, which are bounded
	pieces  pieceSanitizer // the sanitizer, if it is one
	open    bool           // a string may become more than text next to others
	passed  map[Text]bool  // long strings that were left as they are, and whether open knows of them
	joined  bool           // something was changed because of the text next to it
	room    int            // how many bytes may still be put into texts; -1: any number
}

// scrub returns what makes safe what the server of a tool says.
func (p *Parts) scrub(t *Tool, profile string) *scrub {
	s := &scrub{sanitizer: p.Sanitizer, text: Text{Server: t.Name.Server, Tool: t.qualified(), Profile: profile}, room: -1}
	s.pieces, _ = p.Sanitizer.(pieceSanitizer)
	results := p.guard(t).results
	s.strict = !results.redacts()
	if results != allowSecrets {
		s.secrets = p.Secrets
	}
	return s
}

// doc sanitizes the strings of a result, and those of JSON within them, so that a text
// stays in step with the structured content that it mirrors.
func (s *scrub) doc(d Doc) (Doc, error) { return doc.MapDeep(d, s.leaf) }

// tooLong is in the place of a text that would make a result longer than its bound.
const tooLong = "[removed: text that its markers make longer than limits.result]"

// leaf sanitizes one string.
func (s *scrub) leaf(leaf doc.Leaf, text string) string {
	var found []Finding
	before := text
	t := s.text
	t.MIME, t.Text = leaf.MIME, text
	if leaf.JSON {
		text, found = s.whole(t)
	} else {
		text, found = s.plain(t, inJSON(leaf))
	}
	if s.secrets != nil {
		var secrets []Finding
		text, secrets = s.secrets.Redact(leaf.Pointer(), leaf.Name(), text)
		found = append(found, s.fresh(leaf, secrets)...)
	}
	if s.room >= 0 && len(text) > len(before) {
		if grown := len(text) - len(before); grown <= s.room {
			s.room -= grown
		} else {
			text = tooLong
			found = append(found, Finding{Rule: "text/size", Count: 1, Removed: true})
		}
	}
	if path := doc.Path(leaf); leaf.Key && !s.own && reservedMember(path, text) {
		text = "server:" + text
		found = append(found, Finding{Rule: "reserved", Count: 1, Removed: true})
	}
	s.secret = s.secret || holdSecret(found)
	if len(found) > maxFindings-len(s.found) {
		found = found[:maxFindings-len(s.found)]
	}
	if len(found) > 0 {
		at := s.place(leaf)
		for _, f := range found {
			f.At = at
			s.found = append(s.found, f)
		}
	}
	return text
}

// reservedMember reports whether a server may not write a member of its result: one of _meta
// that is the gateway's, or one by which a client would open the page of an app, which may be
// another server's, under a policy of contents that was not looked at.
func reservedMember(path []string, name string) bool {
	n := len(path)
	if n < 2 || path[n-2] != "_meta" || path[0] == "structuredContent" {
		return false
	}
	return name == "ui" || name == "ui/resourceUri" || n == 2 && strings.HasPrefix(name, metaPrefix)
}

// minPassed is how long a string is, in bytes, that is remembered.
const minPassed = 512

// plain sanitizes a string that is no JSON. A long one that was left as it is somewhere is not
// looked at again elsewhere: results repeat their structured content as a text.
func (s *scrub) plain(t Text, inJSON bool) (clean string, found []Finding) {
	long := len(t.Text) >= minPassed
	if long {
		if known, passed := s.passed[t]; passed && (known || !inJSON) {
			return t.Text, nil
		}
	}
	clean, found = s.sanitizer.Sanitize(t)
	if long && clean == t.Text && len(found) == 0 {
		if s.passed == nil {
			s.passed = make(map[Text]bool, 1)
		}
		s.passed[t] = inJSON
	}
	if inJSON && s.pieces != nil && !s.open {
		t.Text = clean
		s.open = s.pieces.Open(t)
	}
	return clean, found
}

// structuredContent is the member of a result with what its texts say as JSON (MCP
// 2025-11-25, server/tools, "Structured Content").
const structuredContent = "structuredContent"

// inJSON reports whether a client shows a string with JSON around it: as a part of a text
// that is JSON, or of the structured content.
func inJSON(leaf doc.Leaf) bool {
	path := doc.Path(leaf)
	return doc.Nested(leaf) || len(path) > 0 && path[0] == structuredContent
}

// whole sanitizes what a client shows of a string that is JSON, whose own strings are sanitized
// already: the text that these make with what is between them.
func (s *scrub) whole(t Text) (string, []Finding) {
	text, found := shortenGaps(s.sanitizer, t)
	if s.pieces == nil || !s.open && strings.IndexByte(text, '\\') < 0 { // an escape is shown, too
		return text, found
	}
	t.Text = text
	clean, more := s.pieces.Inert(t)
	s.joined = s.joined || clean != text
	return clean, append(found, more...)
}

// fresh leaves out of what was found in JSON as a whole what was found in its parts.
func (s *scrub) fresh(leaf doc.Leaf, secrets []Finding) []Finding {
	if !leaf.JSON {
		return secrets
	}
	return slices.DeleteFunc(secrets, func(f Finding) bool {
		return slices.ContainsFunc(s.found, func(old Finding) bool { return old.Rule == f.Rule && old.Fingerprint == f.Fingerprint })
	})
}

// place returns the place of a finding. The server chose the names in it.
func (s *scrub) place(leaf doc.Leaf) string {
	t := s.text
	t.Text = cut(pointerWithout(s.secrets, leaf), maxPointer)
	at, _ := s.sanitizer.Sanitize(t)
	return at
}

// refused reports whether what was sanitized has a secret for which it must not be passed on.
func (s *scrub) refused() bool { return s.strict && s.secret }

// keep writes down what was found at a place.
func (s *scrub) keep(at string, found []Finding) {
	s.secret = s.secret || holdSecret(found)
	for _, f := range found[:min(len(found), maxFindings-len(s.found))] {
		f.At = at
		s.found = append(s.found, f)
	}
}
