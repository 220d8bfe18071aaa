package gate

import "context"

// away gives the call's place back until what it returns is called.
func (p *permitted) away() (resume func(context.Context) error) {
	if p.pause != nil {
		if resume := p.pause(); resume != nil {
			return resume
		}
	}
	return func(context.Context) error { return nil }
}

// reach has the client of the call asked, which holds no place meanwhile that others
// wait for.
func (n *nested) reach(ctx context.Context) (Doc, error) {
	resume := n.by.away()
	answer, err := n.by.call.Client.Request(ctx, n.rec.Call.Action, n.rec.Call.Args)
	if rerr := resume(ctx); rerr != nil && err == nil {
		err = rerr
	}
	return answer, err
}
