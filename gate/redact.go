package gate

import (
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// inPlace replaces what the obligation [obligation.Redact] takes out.
const inPlace = "[redacted]"

// minCopied is the length in bytes from which a value that was taken out of a result is taken out
// of all its texts: a shorter one is in many of them by chance.
const minCopied = 4

// sent returns the call as the upstream gets it under the obligations, and c
// itself if they change nothing.
func sent(c *Call, obligations []obligation.Obligation) *Call {
	var pointers []string
	for _, o := range obligations {
		if r, ok := o.(obligation.Redact); ok {
			pointers = append(pointers, r.Arguments...)
		}
	}
	args, taken := doc.Replace(c.Args, pointers, inPlace)
	if len(taken) == 0 {
		return c
	}
	changed := *c
	changed.Args = args
	return &changed
}

// redactResult takes out of a result what the pointers of o name, and the copies
// of it in its texts: results say in the text what they say in structuredContent,
// as JSON (MCP 2025-11-25, server/tools, "Structured Content") or otherwise.
func redactResult(d Doc, o *obligation.Redact) (Doc, []Finding, error) {
	if o == nil || len(o.Result) == 0 {
		return d, nil, nil
	}
	r := redaction{}
	for _, p := range o.Result {
		if within, ok := strings.CutPrefix(p, structured); ok {
			r.structured = append(r.structured, within)
		}
		if !d.At(p).IsZero() {
			r.found = append(r.found, Finding{Rule: "redacted", At: cut(p, maxPointer), Count: 1, Removed: true})
		}
	}
	d, taken := doc.Replace(d, o.Result, inPlace)
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
	found      []Finding
}

// remember keeps the texts of values whose copies are to go, too.
func (r *redaction) remember(values []Doc) {
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
			r.remember([]Doc{m})
		}
		for e := range v.Elements() {
			r.remember([]Doc{e})
		}
	}
}

// mirrors takes out of each text that is JSON what the pointers into the
// structured content name there.
func (r *redaction) mirrors(d Doc, nested int) (Doc, error) {
	return r.texts(d, func(leaf doc.Leaf, text string) (string, error) {
		inner, ok := doc.Embedded(text)
		if !ok || nested == doc.MaxNested {
			return text, nil
		}
		out, taken := doc.Replace(inner, r.structured, inPlace)
		r.remember(taken)
		if len(taken) > 0 && len(r.found) < maxFindings {
			r.found = append(r.found, Finding{Rule: "redacted", At: cut(leaf.Pointer(), maxPointer), Count: len(taken), Removed: true})
		}
		out, err := r.mirrors(out, nested+1)
		return doc.Around(text, inner, out), err
	})
}

// copies takes the copies of what was taken out of all texts.
func (r *redaction) copies(d Doc) (Doc, error) {
	slices.SortFunc(r.copied, func(a, b string) int { return len(b) - len(a) }) // of two that begin alike the longer
	var pairs []string
	for _, s := range slices.Compact(r.copied) {
		pairs = append(pairs, s, inPlace)
	}
	return r.within(d, strings.NewReplacer(pairs...), 0)
}

func (r *redaction) within(d Doc, copies *strings.Replacer, nested int) (Doc, error) {
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
func (r *redaction) texts(d Doc, f func(doc.Leaf, string) (string, error)) (Doc, error) {
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
		return Doc{}, failed
	}
	return out, err
}
