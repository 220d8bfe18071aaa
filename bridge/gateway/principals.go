package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
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

// Revoked ends what principals have under way whose credentials were revoked: calls, also
// those that wait for their clients or outlive their requests. Streams of notifications end
// with their requests, which are their host's to end; later requests are for
// Config.Principal to refuse.
func (g *Gateway) Revoked(whose func(*gate.Principal) bool) {
	g.held.mu.Lock()
	defer g.held.mu.Unlock()
	for c := range g.held.calls {
		if whose(c.who) {
			c.end(errRevoked)
		}
	}
}

// Note puts into the audit log what is no call: of [audit.Key], [audit.Revoke]
// and [audit.Denied], and of credentials for servers login, logout, refresh and connect.
func (g operator) Note(e audit.Entry) error {
	switch e.Event {
	case audit.Key, audit.Revoke, audit.Denied, "login", "logout", "refresh", "connect":
		return g.note(e)
	}
	return fmt.Errorf("%s is the gateway's own to record", e.Event)
}
