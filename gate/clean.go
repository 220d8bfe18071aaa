package gate

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// clean checks the contents of a result and sanitizes every string of it, and
// then takes out what the policy has redacted. A result that was checked against
// an output schema still keeps to it afterwards, or is refused: clients check
// too, and would blame the tool.
func (w *way) clean(ctx context.Context, p *permitted, res Result) (Doc, error) {
	w.next(step.Sanitize)
	if p.tool.Page != nil && p.call.Renders && p.call.Action == ReadResource {
		return w.page(ctx, p, res.Doc)
	}
	if p.tool.Skill.verified() || p.tool.Skill != nil && p.call.Action != ReadResource {
		return w.skill(ctx, p, res.Doc)
	}
	s := w.scrub(p.tool, p.duty.profile)
	s.text.Kind = w.kind(p.call, p.tool)
	if w.MaxResult > 0 {
		s.room = max(0, w.MaxResult-len(res.Doc.Raw()))
	}
	doc, err := contents{w.ContentChecker, p.call, p.duty.profile, s}.check(res.Doc)
	if err != nil {
		return Doc{}, w.fail(ctx, "the result cannot be sanitized", err)
	}
	s.own = p.passedOn(res)
	doc, err = s.result(p.call.Action, doc)
	if err != nil {
		return Doc{}, w.fail(ctx, "the result cannot be sanitized", err)
	}
	doc = s.mirrored(res.Doc, doc)
	if s.refused() {
		return Doc{}, w.fail(ctx, "the result holds a secret", nil)
	}
	doc, redacted, err := redactResult(doc, p.duty.redact)
	if err != nil {
		return Doc{}, w.fail(ctx, "the result cannot be redacted", err)
	}
	changed := !bytes.Equal(doc.Raw(), res.Doc.Raw())
	if changed && !p.tool.OutputWarn {
		if err := checkOutput(p.tool, Result{Doc: doc, IsError: res.IsError}); err != nil {
			return Doc{}, w.fail(ctx, "the sanitized result breaks the output schema that the tool declares; the server has carried out the call", err)
		}
	}
	w.rec.Findings = append(append(w.rec.Findings, s.found...), redacted...)
	if len(w.rec.Findings) > 0 {
		doc, err = withMeta(doc, MetaFindings, w.rec.Findings)
		if err != nil {
			return Doc{}, w.fail(ctx, "the result cannot be sanitized", err)
		}
	}
	return doc, nil
}

// withMeta sets a member of a result's _meta.
func withMeta(d Doc, name string, v any) (Doc, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return Doc{}, err
	}
	meta := d.Get("_meta")
	if meta.Kind() != doc.Object {
		meta = Doc{}
	}
	return d.With("_meta", meta.With(name, b).Raw()), nil
}
