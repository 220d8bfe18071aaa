package gate

import (
	"cmp"
	"slices"
	"strings"
)

// Redacted stands in the place of what the obligation [Redact] takes out.
const Redacted = "[redacted]"

// minCopied is the length in bytes from which a value that was taken out of a
// result is taken out of all its texts: a shorter one stands in many of them by
// chance.
const minCopied = 4

// join returns what both take out; nil takes out nothing.
func (r *Redact) join(o Redact) *Redact {
	if r == nil {
		r = new(Redact)
	}
	return &Redact{joined(r.Arguments, o.Arguments), joined(r.Result, o.Result)}
}

// joined returns the union of both lists, sorted.
func joined(a, b []string) []string {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// sent returns the call as the upstream gets it under the obligations, and c
// itself if they change nothing.
func sent(c *Call, obligations []Obligation) *Call {
	var pointers []string
	for _, o := range obligations {
		if r, ok := o.(Redact); ok {
			pointers = append(pointers, r.Arguments...)
		}
	}
	args, taken := c.Args.redact(pointers)
	if len(taken) == 0 {
		return c
	}
	changed := *c
	changed.Args = args
	return &changed
}

// redact returns the document with the values that the pointers name replaced,
// and those values. What is within another of them goes with that.
func (d Doc) redact(pointers []string) (Doc, []Doc) {
	var found []Doc
	for _, p := range pointers {
		if v := d.At(p); !v.IsZero() && p != "" {
			found = append(found, v)
		}
	}
	if found == nil {
		return d, nil
	}
	slices.SortFunc(found, func(a, b Doc) int { return cmp.Compare(a.i, b.i) })
	var out []byte
	var taken []Doc
	last, end := d.node().start, d.node().end
	for _, v := range found {
		n := v.node()
		if n.start < last {
			continue
		}
		out = appendString(append(out, d.t.raw[last:n.start]...), Redacted)
		last = n.end
		taken = append(taken, v)
	}
	return MustDoc(string(append(out, d.t.raw[last:end]...))), taken
}

// redactResult takes out of a result what the pointers of o name, and the copies
// of it in its texts: results say in the text what they say in structuredContent,
// as JSON (MCP 2025-11-25, server/tools, "Structured Content") or otherwise.
func redactResult(d Doc, o *Redact) (Doc, []Finding, error) {
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
	d, taken := d.redact(o.Result)
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
		case String:
			if s := v.Text(); len(s) >= minCopied {
				r.copied = append(r.copied, s)
			}
		case Number:
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
	return r.texts(d, func(leaf Leaf, text string) (string, error) {
		inner, ok := embedded(text)
		if !ok || nested == maxNestedJSON {
			return text, nil
		}
		out, taken := inner.redact(r.structured)
		r.remember(taken)
		if len(taken) > 0 && len(r.found) < maxFindings {
			r.found = append(r.found, Finding{Rule: "redacted", At: cut(leaf.Pointer(), maxPointer), Count: len(taken), Removed: true})
		}
		out, err := r.mirrors(out, nested+1)
		return around(text, inner, out), err
	})
}

// copies takes the copies of what was taken out of all texts.
func (r *redaction) copies(d Doc) (Doc, error) {
	slices.SortFunc(r.copied, func(a, b string) int { return len(b) - len(a) }) // of two that begin alike the longer
	var pairs []string
	for _, s := range slices.Compact(r.copied) {
		pairs = append(pairs, s, Redacted)
	}
	return r.within(d, strings.NewReplacer(pairs...), 0)
}

func (r *redaction) within(d Doc, copies *strings.Replacer, nested int) (Doc, error) {
	return r.texts(d, func(_ Leaf, text string) (string, error) {
		inner, ok := embedded(text)
		if !ok || nested == maxNestedJSON {
			return copies.Replace(text), nil
		}
		out, err := r.within(inner, copies, nested+1)
		return around(text, inner, out), err
	})
}

// texts replaces the values of a document that are strings by what f makes of
// them.
func (r *redaction) texts(d Doc, f func(Leaf, string) (string, error)) (Doc, error) {
	var failed error
	out, err := d.MapStrings(func(leaf Leaf, text string) string {
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
