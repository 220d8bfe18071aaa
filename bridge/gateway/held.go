package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// held are the calls under way of principals who were verified by a credential, which can
// be revoked.
type held struct {
	mu    sync.Mutex
	calls map[*heldCall]struct{}
}

type heldCall struct {
	who *gate.Principal
	end context.CancelCauseFunc
}

// begin returns the context of a call, which ends with the credential of its principal,
// until done is called.
func (h *held) begin(ctx context.Context, who *gate.Principal) (_ context.Context, done func()) {
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
	return ctx, func() {
		h.mu.Lock()
		delete(h.calls, c)
		h.mu.Unlock()
		end(nil)
	}
}

var errRevoked = errors.New("the caller's credential was revoked")
