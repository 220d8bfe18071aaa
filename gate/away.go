package gate

import "context"

// Pause gives the slot of the permitted call to others until what it returns is called. It is for
// a call that waits: for its client, or for a limit of its own server. What it returns waits for a
// slot until ctx ends, and its error is that of ctx.
func (p Permit) Pause() (resume func(context.Context) error) {
	if p.of != nil && p.of.slot != nil {
		if resume := p.of.slot.Pause(); resume != nil {
			return resume
		}
	}
	return func(context.Context) error { return nil }
}

// reach has the client of the call asked, which holds no slot meanwhile that others
// wait for.
func (n *nested) reach(ctx context.Context) (Doc, error) {
	resume := Permit{n.by}.Pause()
	answer, err := n.by.call.Client.Request(ctx, n.rec.Call.Action, n.rec.Call.Args)
	if rerr := resume(ctx); rerr != nil && err == nil {
		err = rerr
	}
	return answer, err
}
