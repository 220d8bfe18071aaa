package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

// The members that the gate adds to a result's _meta.
const (
	// MetaFindings lists what was found in a result: [Finding] values.
	MetaFindings = "io.github.wasmgate/findings"
	// MetaRefusal is {code, reason, record_id} in the result of a refused call, and
	// retry_after_ms if it is known when trying again is worth it.
	MetaRefusal = "io.github.wasmgate/refusal"
)

// MetaPrompt is the member of a request's _meta in which a host application gives
// the user's own words, a string. See [Parts.TrustPrompt].
const MetaPrompt = "io.github.wasmgate/prompt"

// maxFindings bounds the findings kept of one result; a hostile text can be
// made of nothing else.
const maxFindings = 100

// maxPointer bounds the place of a finding, in bytes: the server chooses the
// names in it.
const maxPointer = 256

// metaPrefix begins the names of _meta that are the gate's. A server that uses
// one would speak in the gate's name.
const metaPrefix = "io.github.wasmgate/"

// maxNestedJSON bounds how deep JSON within strings within JSON is walked.
const maxNestedJSON = 4

// clean checks the contents of a result and sanitizes every string of it, and
// then takes out what the policy has redacted. A result that was checked against
// an output schema still keeps to it afterwards, or is refused: clients check
// too, and would blame the tool.
func (w *way) clean(ctx context.Context, p *permitted, res Result) (Doc, error) {
	w.next(StepSanitize)
	doc, refused, err := contents{w.ContentChecker, p.call, p.tool, p.duty.profile}.check(res.Doc)
	if err != nil {
		return Doc{}, w.fail(ctx, "the result cannot be made safe", err)
	}
	w.found(refused...)
	s := w.scrub(p.tool, p.duty.profile)
	doc, err = s.doc(doc, "", 0)
	if err != nil {
		return Doc{}, w.fail(ctx, "the result cannot be made safe", err)
	}
	if w.guard(p.tool).refusesResult(s.found) {
		return Doc{}, w.fail(ctx, "the result holds a secret", nil)
	}
	doc, redacted, err := redactResult(doc, p.duty.redact)
	if err != nil {
		return Doc{}, w.fail(ctx, "the result cannot be redacted", err)
	}
	changed := !bytes.Equal(doc.Raw(), res.Doc.Raw())
	if changed && !p.tool.OutputWarn {
		if err := checkOutput(p.tool, Result{Doc: doc, IsError: res.IsError}); err != nil {
			return Doc{}, w.fail(ctx, "the result, made safe, breaks the output schema that the tool declares", err)
		}
	}
	w.rec.Findings = append(append(w.rec.Findings, s.found...), redacted...)
	if len(w.rec.Findings) > 0 {
		doc, err = withMeta(doc, MetaFindings, w.rec.Findings)
		if err != nil {
			return Doc{}, w.fail(ctx, "the result cannot be made safe", err)
		}
	}
	return doc, nil
}

// withMeta sets a member of a result's _meta.
func withMeta(doc Doc, name string, v any) (Doc, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return Doc{}, err
	}
	meta := doc.Get("_meta")
	if meta.Kind() != Object {
		meta = Doc{}
	}
	return doc.With("_meta", meta.With(name, b).Raw()), nil
}

// scrub sanitizes documents and collects what it finds.
type scrub struct {
	sanitizer Sanitizer
	text      Text
	found     []Finding
	// secrets takes secrets out of a text; nil leaves them.
	secrets func(pointer, text string) (string, []Finding)
}

// scrub returns what makes safe what the server of a tool says.
func (p *Parts) scrub(t *Tool, profile string) *scrub {
	s := &scrub{sanitizer: p.Sanitizer, text: Text{Server: t.Name.Server, Tool: t.qualified(), Profile: profile}}
	if p.guard(t).results != AllowSecrets {
		s.secrets = p.Secrets.Redact
	}
	return s
}

// doc sanitizes the strings of d, which stands at a place of the result.
func (s *scrub) doc(d Doc, at string, nested int) (Doc, error) {
	var failed error
	out, err := d.MapStrings(func(leaf Leaf, text string) string {
		if failed != nil {
			return text
		}
		clean, err := s.leaf(leaf, text, at, nested)
		failed = err
		return clean
	})
	if failed != nil {
		return Doc{}, failed
	}
	return out, err
}

// leaf sanitizes one string. JSON in it is walked and keeps its bytes but for
// the strings that change, so that a text stays in step with the structured
// content that it mirrors.
func (s *scrub) leaf(leaf Leaf, text, at string, nested int) (string, error) {
	if inner, ok := embedded(text); ok && nested < maxNestedJSON && !leaf.Key {
		out, err := s.doc(inner, at+leaf.Pointer(), nested+1)
		if err != nil {
			return text, err
		}
		return around(text, inner, out), nil
	}
	t := s.text
	t.MIME, t.Text = leaf.MIME, text
	clean, found := s.sanitizer.Sanitize(t)
	if s.secrets != nil {
		var secrets []Finding
		clean, secrets = s.secrets(at+leaf.Pointer(), clean)
		found = append(found, secrets...)
	}
	if leaf.Key && at == "" && len(leaf.path) == 2 && leaf.path[0] == "_meta" && strings.HasPrefix(clean, metaPrefix) {
		clean = "server:" + clean
		found = append(found, Finding{Rule: "reserved", Count: 1, Removed: true})
	}
	if len(found) > maxFindings-len(s.found) {
		found = found[:maxFindings-len(s.found)]
	}
	if len(found) > 0 { // the pointer holds names that the server chose
		t.MIME, t.Text = "", cut(at+leaf.Pointer(), maxPointer)
		at, _ = s.sanitizer.Sanitize(t)
	}
	for _, f := range found {
		f.At = at
		s.found = append(s.found, f)
	}
	return clean, nil
}

// embedded reads a string that is a JSON object or array and nothing else.
func embedded(text string) (Doc, bool) {
	t := strings.TrimSpace(text)
	if t == "" || (t[0] != '{' && t[0] != '[') {
		return Doc{}, false
	}
	d, err := ParseDoc([]byte(text))
	return d, err == nil
}

// around puts out in the place of the document inner that text consists of; white
// space around it stays.
func around(text string, inner, out Doc) string {
	if out == inner {
		return text
	}
	n := inner.node()
	return text[:n.start] + out.String() + text[n.end:]
}
