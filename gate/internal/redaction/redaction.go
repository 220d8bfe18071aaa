package redaction

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// Mark is in the place of each value that is taken out.
const Mark = "[redacted]"

// minCopied is the length in bytes from which a value that was taken out of a result is taken out
// of all its texts: a shorter one is in many of them by chance.
const minCopied = 4

// maxPlaces bounds the places that are returned of the texts of a result.
const maxPlaces = 100

// A Place is a JSON Pointer at which values were taken out, and how many.
type Place struct {
	Pointer string
	Count   int
}

// Result takes out of a result what the pointers name, and the copies of it in its texts: results
// say in the text what they say in structuredContent, as JSON (MCP 2025-11-25, server/tools,
// "Structured Content") or otherwise. It returns where something was taken out, of texts that are
// JSON at most 100 places. The error says that the result cannot be written again.
func Result(d doc.Doc, pointers []string) (doc.Doc, []Place, error) {
	if len(pointers) == 0 {
		return d, nil, nil
	}
	r := redaction{}
	for _, p := range pointers {
		if within, ok := strings.CutPrefix(p, structured); ok {
			r.structured = append(r.structured, within)
		}
		if !d.At(p).IsZero() {
			r.found = append(r.found, Place{p, 1})
		}
	}
	d, taken := doc.Replace(d, pointers, Mark)
	r.remember(taken)
	d, err := r.mirrors(d, 0)
	if err == nil && r.copied != nil {
		d, err = r.copies(d)
	}
	return d, r.found, err
}

// structured is what pointers into the structured content of a result begin with.
const structured = "/structuredContent"

// redaction is the redaction of one result.
type redaction struct {
	structured []string // pointers into the structured content
	copied     []string // texts of values that were taken out
	found      []Place
}

// remember keeps the texts of values whose copies are to go, too.
func (r *redaction) remember(values []doc.Doc) {
	for _, v := range values {
		switch v.Kind() {
		case doc.String:
			if s := v.Text(); len(s) >= minCopied {
				r.copied = append(r.copied, s)
			}
		case doc.Number:
			if s := v.String(); len(s) >= minCopied {
				r.copied = append(r.copied, s)
			}
		}
		for _, m := range v.Members() {
			r.remember([]doc.Doc{m})
		}
		for e := range v.Elements() {
			r.remember([]doc.Doc{e})
		}
	}
}

// mirrors takes out of each text that is JSON what the pointers into the
// structured content name there.
func (r *redaction) mirrors(d doc.Doc, nested int) (doc.Doc, error) {
	return r.texts(d, func(leaf doc.Leaf, text string) (string, error) {
		inner, ok := doc.Embedded(text)
		if !ok || nested == doc.MaxNested {
			return text, nil
		}
		out, taken := doc.Replace(inner, r.structured, Mark)
		r.remember(taken)
		if len(taken) > 0 && len(r.found) < maxPlaces {
			r.found = append(r.found, Place{leaf.Pointer(), len(taken)})
		}
		out, err := r.mirrors(out, nested+1)
		return doc.Around(text, inner, out), err
	})
}

// copies takes the copies of what was taken out of all texts.
func (r *redaction) copies(d doc.Doc) (doc.Doc, error) {
	slices.SortFunc(r.copied, func(a, b string) int { return len(b) - len(a) }) // of two that begin alike the longer
	var pairs []string
	for _, s := range slices.Compact(r.copied) {
		pairs = append(pairs, s, Mark)
	}
	return r.within(d, strings.NewReplacer(pairs...), 0)
}

func (r *redaction) within(d doc.Doc, copies *strings.Replacer, nested int) (doc.Doc, error) {
	return r.texts(d, func(_ doc.Leaf, text string) (string, error) {
		inner, ok := doc.Embedded(text)
		if !ok || nested == doc.MaxNested {
			return copies.Replace(text), nil
		}
		out, err := r.within(inner, copies, nested+1)
		return doc.Around(text, inner, out), err
	})
}

// texts replaces the values of a document that are strings by what f makes of
// them.
func (r *redaction) texts(d doc.Doc, f func(doc.Leaf, string) (string, error)) (doc.Doc, error) {
	var failed error
	out, err := doc.MapStrings(d, func(leaf doc.Leaf, text string) string {
		if failed != nil || leaf.Key {
			return text
		}
		var s string
		s, failed = f(leaf, text)
		return s
	})
	if failed != nil {
		return doc.Doc{}, failed
	}
	return out, err
}
