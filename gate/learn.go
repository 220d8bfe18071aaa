package gate

import (
	"context"

	"github.com/wasmgate/wasmgate/gate/internal/doc"
)

// readPrompt takes the user's own words that come with a call.
func (w *way) readPrompt(ctx context.Context, c *Call) error {
	if !w.TrackValues {
		return nil
	}
	own, err := ParseDoc(doc.AppendString(nil, c.Prompt))
	if err != nil {
		return w.fail(ctx, "the user's own words are no text", err)
	}
	prompts := []Doc{own}
	if w.TrustPrompt {
		prompts = append(prompts, c.Meta.Get(MetaPrompt))
	}
	for _, p := range prompts {
		if p.Text() == "" {
			continue
		}
		if err := w.teach(ctx, c, Lesson{From: p, Source: FromPrompt}); err != nil {
			return err
		}
	}
	return nil
}

// learn gives the session what a result taught. Its labels joined the session when the
// call was admitted.
func (w *way) learn(ctx context.Context, p *permitted, result Doc) error {
	if p.relay != nil { // the other call teaches
		return nil
	}
	labels, vouched := w.teaches(p.tool)
	l := Lesson{Labels: labels}
	if w.TrackValues {
		l.From, l.Source = result, source(vouched, p.session, p.tool, p.call.Args)
	}
	if err := w.teach(ctx, p.call, l); err != nil {
		return err
	}
	w.rec.After = p.session.Labels.Join(labels)
	return nil
}

// vouch has the session trust what a call uses that was admitted before anything
// untrusted was read: nobody outside had a part in choosing it.
func (w *way) vouch(ctx context.Context, q Query, sent *Call) error {
	if !w.TrackValues || q.Session.Tainted() || q.Tool.Relay { // what the other call uses is vouched for there
		return nil
	}
	return w.teach(ctx, sent, Lesson{From: sent.Args, Source: FromTrusted, Used: true})
}

// teach has the session of a call learn.
func (w *way) teach(ctx context.Context, c *Call, l Lesson) error {
	l.Call = c.ID
	if err := w.Sessions.Learn(ctx, c.Session, l); err != nil {
		return w.fail(ctx, "the session's state cannot be kept", err)
	}
	return nil
}

// teaches returns the labels that a session gets from a result of the tool, and
// whether its values are trusted if its arguments are. What a tool says that carries out
// others, they have taught.
func (p *Parts) teaches(t *Tool) (labels Labels, vouched bool) {
	if t.Relay {
		return nil, false
	}
	if p.Labeler != nil && t.Feature.called() { // what the operator says of a tool says nothing of a prompt of that name
		if l, ok := p.Labeler.Labels(t); ok {
			return l.Teaches(), l.Result == ResultTrusted || l.Result == ResultEcho
		}
	}
	return t.Teaches, !t.Teaches.Cover(Labels{Untrusted})
}

// source returns what the values of a result count as. Those of a tool that
// nobody outside can write through are trusted as long as nobody outside has
// chosen its arguments: otherwise whoever wrote what the session has read could
// have a trusted tool say it again.
func source(vouched bool, admitted Session, t *Tool, args Doc) Source {
	if !vouched {
		return FromUntrusted
	}
	if admitted.Tainted() {
		for v := range admitted.Values.Arguments(t, args) {
			if v.Kind != Bool && !v.Source.Trusted() { // true and false say nothing
				return FromUntrusted
			}
		}
	}
	return FromTrusted
}
