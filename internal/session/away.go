package session

import (
	"context"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// holding is what one call has taken.
type holding struct {
	limits *Limits
	demand
	spent []gate.Charge // of rates
	ended sync.Once

	mu   sync.Mutex
	has  bool // its place among all, and that of its session
	away bool // a place among those that have given theirs back
	late bool // it is away, and nobody is to resume it
	over bool
}

// pause gives the call's place back until what it returns is called. It returns nil if
// the call has to keep it: as many calls are away as may be, of its session or in all.
func (h *holding) pause() (resume func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late && h.away && !h.over {
		h.late = false
		return h.resume
	}
	gives, _ := h.parts()
	if !h.has || h.over || h.limits.away.take(context.Background(), gives, -1) != nil { // it waits for nothing
		return nil
	}
	h.has, h.away = false, true
	h.from.release(gives)
	return h.resume
}

// resume takes the place again, and waits for it until ctx ends. A call that has not got
// it by then stays away: it may go on, for its server can end the question that it waits
// with, and then it counts among those that are away until another question or its end.
func (h *holding) resume(ctx context.Context) error {
	h.mu.Lock()
	if !h.away {
		h.mu.Unlock()
		return nil
	}
	h.away = false // end and others leave the place among those away to this one
	h.mu.Unlock()
	gives, _ := h.parts()
	err := h.from.again(ctx, gives)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !h.over {
		h.away, h.late = true, true
		return err
	}
	h.limits.away.release(gives)
	switch {
	case err != nil:
		return err
	case h.over:
		h.from.release(gives)
	default:
		h.has = true
	}
	return nil
}

// release gives all of it back, once, and has the rates know how much the call has brought.
func (h *holding) release(bytes int64) {
	h.ended.Do(func() {
		h.end()
		h.limits.rates.spend(h.spent, bytes)
	})
}

// end gives back what is left.
func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.from == nil || h.over {
		return
	}
	h.over = true
	if h.has {
		h.from.release(h.demand)
		return
	}
	gives, keeps := h.parts()
	if h.away {
		h.away = false
		h.limits.away.release(gives)
	}
	h.from.release(keeps)
}

// parts returns what a call gives back while it is away, and what it keeps.
func (d demand) parts() (gives, keeps demand) {
	gives, keeps = d, d
	gives.shares, keeps.shares, keeps.n = nil, nil, 0
	for _, s := range d.shares {
		if s.of == ofServer || s.of == ofTool {
			keeps.shares = append(keeps.shares, s)
		} else {
			gives.shares = append(gives.shares, s)
		}
	}
	return gives, keeps
}
