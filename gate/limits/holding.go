package limits

import (
	"context"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A holding is what one call has taken. It implements [gate.Slot].
type holding struct {
	limits  *Limits
	pool    *pool
	session gate.SessionKey
	slot    demand        // its slot among all, and that of its session
	spent   []gate.Charge // of rates

	mu    sync.Mutex
	has   bool    // its slot
	late  bool    // it is away, and no call of resume is to come
	over  bool    // it has ended
	at    *demand // what it has of its server and its tool; nil if that is nothing
	away  *demand // what it has among the calls that have given their slot back; nil if it has not
	work  *demand // what it works on; nil if it does not
	after func(context.Context) error
}

// Charge implements [gate.Slot].
func (h *holding) Charge(ctx context.Context, c gate.Charges) error {
	if err := h.paused(c.Server); err != nil {
		return err
	}
	var spent []gate.Charge
	if len(c.Rates) > 0 {
		var err error
		if spent, err = h.limits.rates.take(ctx, c.Rates); err != nil {
			return err
		}
	}
	var err error
	if !c.Again {
		err = h.enter(ctx, c)
	}
	if err == nil {
		err = h.paused(c.Server) // a call that waited is new, too
	}
	if err != nil {
		h.limits.rates.giveBack(spent)
		return err
	}
	h.spent = append(h.spent, spent...)
	return nil
}

func (h *holding) paused(server string) error {
	if h.limits.o.Paused != nil && server != "" {
		if why := h.limits.o.Paused(server); why != "" {
			return &gate.Busy{What: why}
		}
	}
	return nil
}

// enter takes slots at the server and of the tool of a call. While it waits for them, another call
// has its own slot.
func (h *holding) enter(ctx context.Context, c gate.Charges) error {
	tool, server := limitOf(h.limits.o.Tool, c.Tool), limitOf(h.limits.o.Server, c.Server)
	if h.pool == h.limits.relays {
		server = 0
	}
	if tool <= 0 && server <= 0 {
		return nil
	}
	at := &demand{Caller: h.slot.Caller, Lane: h.slot.Lane}
	if tool > 0 {
		at.Add(room{ofTool, gate.SessionKey{ID: c.Tool}}, tool, 1)
	}
	if server > 0 {
		at.Add(room{ofServer, gate.SessionKey{ID: c.Server}}, server, 1)
	}
	if h.pool.Try(at) {
		return h.reached(at)
	}
	wait := h.limits.o.Wait
	var away bool
	if wait > 0 {
		away = h.pause() != nil
	}
	if err := h.pool.Take(ctx, at, wait); err != nil {
		return h.pool.busy(err)
	}
	if away {
		if err := h.resumeWithin(ctx, wait); err != nil {
			h.pool.Give(at)
			return h.pool.busy(err)
		}
	}
	return h.reached(at)
}

// reached keeps what the call has of its server and its tool.
func (h *holding) reached(at *demand) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		h.pool.Give(at)
		return nil
	}
	h.at = at
	return nil
}

// Work implements [gate.Slot].
func (h *holding) Work(ctx context.Context, bytes int) error {
	h.mu.Lock()
	works := h.work != nil
	h.mu.Unlock()
	if works {
		return nil
	}
	d := &demand{Caller: h.slot.Caller, Lane: h.slot.Lane}
	d.Add(all, int64(max(1, processors-1))*maxWork, int64(min(bytes, maxWork)))
	var after func(context.Context) error
	if !h.limits.work.Try(d) {
		after = h.pause()
		if err := h.limits.work.Wait(ctx, d); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.work, h.after = d, after
	if h.over {
		h.rest()
	}
	return nil
}

// Rest implements [gate.Slot].
func (h *holding) Rest(ctx context.Context) error {
	h.mu.Lock()
	after := h.rest()
	h.mu.Unlock()
	if after == nil {
		return nil
	}
	return after(ctx)
}

// rest gives back what the call works with, and returns what takes its slot again. The caller
// holds mu.
func (h *holding) rest() (after func(context.Context) error) {
	if h.work != nil {
		h.limits.work.Give(h.work)
	}
	after, h.work, h.after = h.after, nil, nil
	return after
}

// Pause implements [gate.Slot].
func (h *holding) Pause() (resume func(context.Context) error) {
	if h.pool != h.limits.calls {
		return nil
	}
	return h.pause()
}

// pause gives the call's slot back until what it returns is called. It returns nil if
// the call has to keep it: as many calls are away as may be, of its session or in all.
func (h *holding) pause() (resume func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late && h.away != nil && !h.over {
		h.late = false
		return h.resume
	}
	if !h.has || h.over {
		return nil
	}
	away := new(demand)
	h.limits.slot(away, h.limits.away, h.slot.Caller, h.session)
	if !h.limits.away.Try(away) {
		return nil
	}
	h.has, h.away = false, away
	h.pool.Give(&h.slot)
	return h.resume
}

// resume takes the slot again, and waits for it until ctx ends. A call that has not got
// it by then stays away: it may go on, for its server can end the question that it waits
// with, and then it counts among those that are away until another question or its end.
func (h *holding) resume(ctx context.Context) error { return h.resumeWithin(ctx, 0) }

// resumeWithin is resume for a call that waits no longer than that; zero sets no bound.
func (h *holding) resumeWithin(ctx context.Context, wait time.Duration) error {
	h.mu.Lock()
	away := h.away
	h.away = nil // end and others leave the slot among those away to this one
	h.mu.Unlock()
	if away == nil {
		return nil
	}
	err := h.pool.Again(ctx, &h.slot, wait)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !h.over {
		h.away, h.late = away, true
		return err
	}
	h.limits.away.Give(away)
	switch {
	case err != nil:
		return err
	case h.over:
		h.pool.Give(&h.slot)
	default:
		h.has = true
	}
	return nil
}

// Release implements [gate.Slot].
func (h *holding) Release(bytes int64) {
	h.mu.Lock()
	over := h.over
	h.over = true
	if !over {
		h.end()
	}
	h.mu.Unlock()
	if !over {
		h.limits.rates.spend(h.spent, bytes)
	}
}

// end gives back what the call has. The caller holds mu.
func (h *holding) end() {
	h.rest()
	if h.at != nil {
		h.pool.Give(h.at)
	}
	if h.has {
		h.pool.Give(&h.slot)
	}
	if h.away != nil {
		h.limits.away.Give(h.away)
	}
	h.at, h.has, h.away = nil, false, nil
}
