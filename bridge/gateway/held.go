package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/gate"
)

// held are the calls under way of principals who were verified by a credential, which can
// be revoked.
type held struct {
	mu    sync.Mutex
	calls map[*heldCall]struct{}
	// revoked is how often credentials were revoked, and latest has whose they were, the last ones: a call that arrived before may begin after.
	revoked atomic.Uint32
	latest  [64]func(*gate.Principal) bool
}

type heldCall struct {
	who *gate.Principal
	end context.CancelCauseFunc
}

// revocations is what [gate.Call] has of that name.
func (h *held) revocations() uint32 { return h.revoked.Load() + 1 }

// revoke ends the calls of principals whose credentials were revoked, those too that have not begun.
func (h *held) revoke(whose func(*gate.Principal) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.revoked.Load()
	h.latest[n%uint32(len(h.latest))] = whose
	h.revoked.Store(n + 1)
	for c := range h.calls {
		if whose(c.who) {
			c.end(errRevoked)
		}
	}
}

// ended says why a call does not begin that arrived when so many revocations were known; nil if it may.
// Callers hold mu.
func (h *held) ended(c *gate.Call) error {
	if c.Revocations == 0 {
		return nil
	}
	now := h.revoked.Load()
	if now-(c.Revocations-1) > uint32(len(h.latest)) {
		return errManyRevoked
	}
	for n := c.Revocations - 1; n < now; n++ {
		if h.latest[n%uint32(len(h.latest))](c.Who) {
			return errRevoked
		}
	}
	return nil
}

// begin returns the context of a call, which ends with the credential of its principal,
// until done is called.
func (h *held) begin(ctx context.Context, of *gate.Call) (_ context.Context, done func()) {
	who := of.Who
	if who == nil || who.Auth == "" || who.Auth == gate.Local().Auth {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	c := &heldCall{who, end}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil {
		h.calls = make(map[*heldCall]struct{})
	}
	h.calls[c] = struct{}{}
	if err := h.ended(of); err != nil {
		end(err)
	}
	return ctx, func() {
		h.mu.Lock()
		delete(h.calls, c)
		h.mu.Unlock()
		end(nil)
	}
}

var (
	errRevoked     = errors.New("the caller's credential was revoked")
	errManyRevoked = errors.New("more credentials were revoked while the call arrived than are remembered; call again")
)
