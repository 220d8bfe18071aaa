package gateway

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/limit"
	"github.com/wasmgate/wasmgate/internal/session"
)

// pauses are the servers of which nothing new is carried out, "" for all; a set that is
// replaced as a whole.
type pauses struct {
	atomic.Pointer[map[string]bool]
}

func (p *pauses) load() map[string]bool {
	if set := p.Load(); set != nil {
		return *set
	}
	return nil
}

// reason returns why a call takes no place, "" if it may.
func (p *pauses) reason(charges []gate.Charge) string {
	set := p.load()
	if len(set) == 0 {
		return ""
	}
	for _, c := range charges {
		switch {
		case c.Rate != nil:
		case set[""]:
			return "the operator has paused the gateway"
		case set[c.Server]:
			return fmt.Sprintf("the operator has paused server %s", c.Server)
		}
	}
	return ""
}

// pausing are limits that let nothing pass while it is paused.
type pausing struct {
	*session.Limits
	paused *pauses
}

var _ gate.Limiter = pausing{}

// Take implements [gate.Limiter]. A call that waited for its place is new, too.
func (l pausing) Take(ctx context.Context, charges []gate.Charge) (func(int64), func() func(context.Context) error, error) {
	if why := l.paused.reason(charges); why != "" {
		return nil, nil, &limit.Busy{What: why}
	}
	release, pause, err := l.Limits.Take(ctx, charges)
	if why := l.paused.reason(charges); err == nil && why != "" {
		release(0)
		return nil, nil, &limit.Busy{What: why}
	}
	return release, pause, err
}
