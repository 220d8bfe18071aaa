package gate

import (
	"context"
	"fmt"
)

// Recall has a session learn what a kept result teaches, before anybody in it reads the
// result: of a call that was made earlier, and in another session perhaps. Call is the
// ID under which that one is recorded.
func (g *Gate) Recall(ctx context.Context, k SessionKey, call string, kept Result) error {
	return g.parts.Load().recall(ctx, k, call, kept)
}

func (p *Parts) recall(ctx context.Context, k SessionKey, call string, kept Result) error {
	l := Lesson{Call: call, Labels: kept.Labels}
	if p.TrackValues && kept.Labels.Cover(Labels{Untrusted}) { // what is not learnt is not trusted either
		l.From, l.Source = kept.Doc, FromUntrusted
	}
	if err := p.Sessions.Learn(ctx, k, l); err != nil {
		return fmt.Errorf("the session's state cannot be kept: %w", err)
	}
	return nil
}
