package gate

import (
	"context"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// readPrompt takes the user's own words that come with a call.
func (w *way) readPrompt(ctx context.Context, c *Call) error {
	if !w.TrackValues {
		return nil
	}
	own, err := ParseDoc(doc.AppendString(nil, c.Prompt))
	if err != nil {
		return w.fail(ctx, "the user's message is not text", err)
	}
	prompts := []Doc{own}
	if w.TrustPrompt {
		prompts = append(prompts, c.Meta.Get(MetaPrompt))
	}
	for _, p := range prompts {
		if p.Text() == "" {
			continue
		}
		if err := w.teach(ctx, c, Lesson{From: p, Source: provenance.FromPrompt}); err != nil {
			return err
		}
	}
	return nil
}

// learn gives the session what a result taught. Its labels joined the session when the
// call was admitted, but for those of a result that is not what its tool is said to return.
func (w *way) learn(ctx context.Context, p *permitted, result Doc) error {
	if p.relay != nil { // the other call teaches
		return nil
	}
	labels, vouched := w.teaches(p.tool)
	said := w.said(p.tool)
	if at := provenance.Contradicts(w.Echoes, provenance.Saying{
		Tool: p.tool.Name.String() + " " + p.tool.Digest + p.tool.ModuleDigest, Said: said, Args: p.call.Args, Result: result, Own: p.call.own(), Structure: w.Structure,
	}); at != "" {
		w.found(Finding{Rule: "flow/" + string(said.Result), At: at, Count: 1})
		labels, vouched = labels.Join(Labels{provenance.Untrusted}), false
	}
	l := Lesson{Labels: labels}
	if w.TrackValues && p.tool.Page == nil { // no model reads a page
		l.From, l.Tool, l.Said, l.Structure = result, p.tool, said, w.Structure
		known := w.known(Query{Call: p.call, Tool: p.tool, Session: p.session})
		l.Source = source(vouched, p.session.Tainted(), known, p.tool, p.call.Args)
		l.Own = len(said.Own) > 0 && !result.Get("isError").True() && source(true, p.session.Tainted(), known, p.tool, p.call.Args) == provenance.FromTrusted
		w.rec.OwnRecord = l.Own
		l.Made = len(said.Makes) > 0 && !result.Get("isError").True() // what could not be made may be somebody's
	}
	if err := w.teach(ctx, p.call, l); err != nil {
		return err
	}
	if l.Made && p.session.Tainted() {
		if err := w.teach(ctx, p.call, made(p, said)); err != nil {
			return err
		}
	}
	w.rec.After = p.session.Labels.Join(labels)
	return nil
}

// made is the lesson that what a call has made is the session's own, for tools of the same
// server that take its kind.
func made(p *permitted, said provenance.ToolLabels) Lesson {
	l := Lesson{From: emptyObject, Source: provenance.FromTrusted, Tool: p.tool}
	for _, at := range said.Makes {
		if kind := provenance.KindOf(said, at); kind != "" {
			l.ids = append(l.ids, provenance.Made(p.tool.Name.Server, kind, p.call.Args.At(at))...)
		}
	}
	return l
}

// vouch has the session trust the arguments of a call that was admitted before anything untrusted
// was read: no outsider had a part in choosing them.
func (w *way) vouch(ctx context.Context, q Query, sent *Call) error {
	if !w.TrackValues || q.Session.Tainted() || q.Tool.Relay || q.FromApp() { // the other call vouches for what it uses
		return nil
	}
	return w.teach(ctx, sent, Lesson{From: sent.Args, Source: provenance.FromTrusted, Used: true})
}

// teach has the session of a call learn.
func (w *way) teach(ctx context.Context, c *Call, l Lesson) error {
	l.Call, l.Program, l.Connection, l.Origins = c.ID, c.Program(), c.Connected(), w.TrackOrigins
	if err := w.Sessions.Learn(ctx, c.Session, l); err != nil {
		return w.fail(ctx, "the session's state cannot be stored", err)
	}
	return nil
}

// source returns what the values of a result count as. Those of a tool that no outsider can write
// through are trusted as long as no outsider has chosen its arguments. Otherwise the author of what
// the session has read, or was shown in a listing, could have a trusted tool say it again.
func source(vouched, tainted bool, known provenance.Provenance, t *Tool, args Doc) provenance.Source {
	if !vouched {
		return provenance.FromUntrusted
	}
	if tainted || known.WasShown() {
		for v := range known.Arguments(t.Definition, args) {
			if v.Kind != doc.Bool && (tainted && !v.Source.Trusted() || provenance.Brought(known, v)) { // true and false say nothing
				return provenance.FromUntrusted
			}
		}
	}
	return provenance.FromTrusted
}
