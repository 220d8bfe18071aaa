package host

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/gate"
)

// Refused answers what a client's message is refused with, and "" if it may pass.
func (h *Host) Refused(body []byte) string {
	_, no := h.Screen(context.Background(), sessions.Client{Who: gate.Local()}, body)
	if no == nil {
		return ""
	}
	return string(no.Body)
}

// Seal is [sealed.Sealer.Seal], under a secret.
func Seal(secret []byte, c *gate.Call, approval string, expires time.Time) string {
	s, err := sealed.New(secret)
	if err != nil {
		panic(err)
	}
	return s.Seal(c, approval, expires)
}

// Open is [sealed.Sealer.Open], under a secret.
func Open(secret []byte, c *gate.Call, state string) (approval string, err error) {
	s, err := sealed.New(secret)
	if err != nil {
		return "", err
	}
	return s.Open(c, state)
}

// Elicited is [elicit.Answer].
var Elicited = elicit.Answer
