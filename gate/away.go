package gate

import "context"

// takeFrom takes charges, and returns a Pause if the limiter knows how.
func takeFrom(ctx context.Context, l Limiter, charges []Charge) (Release, Pause, error) {
	if p, ok := l.(Pauser); ok {
		return p.TakePausable(ctx, charges)
	}
	release, err := l.Take(ctx, charges)
	return release, nil, err
}

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
func (w *way) reach(ctx context.Context) (Doc, error) {
	resume := w.parent.away()
	answer, err := w.parent.call.Peer.Request(ctx, w.rec.Call.Action, w.rec.Call.Args)
	if rerr := resume(ctx); rerr != nil && err == nil {
		err = rerr
	}
	return answer, err
}
