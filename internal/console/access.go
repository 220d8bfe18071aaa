package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/console/signin"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy"
)

// An access finds out who sends requests, and has policies decide on what they would do.
type access struct {
	gateway *gateway.Gateway
	callers *callers.Callers
	signin  *signin.Pages
}

// A caller is the sender of a request: the operator, who comes over the control socket or has signed in
// by it; a person who has signed in at an issuer; or, at the API, the holder of the key in the request.
type caller struct {
	*gate.Principal
	operator bool
	key      string // that a program has brought, or a person's token
}

type callerKey struct{}

// overSocketKey marks requests that came over the control socket.
type overSocketKey struct{}

var errSignIn = errors.New("sign in with: wasmgate console; programs bring an API key")

// caller finds out who sends a request. A request with a key is the key holder's, even if its browser
// is signed in. If the request asks, and does not only wait, the browser stays signed in for longer.
func (a *access) caller(r *http.Request, isPage, asks bool) (caller, error) {
	if r.Header.Values("Authorization") != nil && !isPage {
		who, err := a.callers.KeyHolder(r)
		return caller{who, false, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}, err
	}
	if r.Context().Value(overSocketKey{}) != nil {
		return caller{gate.Local(), true, ""}, nil
	}
	token, in := a.signin.In(r, asks)
	switch {
	case !in:
		return caller{}, errSignIn
	case token == "":
		return caller{gate.Local(), true, ""}, nil
	}
	who, err := a.signin.People.TokenHolder(r.Context(), token)
	if err != nil { // it has expired, or was revoked
		return caller{}, errSignIn
	}
	return caller{who, false, token}, nil
}

// by is who sends the request of a context.
func by(ctx context.Context) caller { return ctx.Value(callerKey{}).(caller) }

// named returns the sender of a context's request, as records name it.
func named(ctx context.Context) string {
	by := by(ctx)
	return "console:" + match.Name(by.Tenant, by.ID)
}

// readArguments is the op of reading what calls were made with, and what they returned, which is
// recorded before they are shown.
const readArguments = "arguments.read"

// may decides on what the sender of a request would do, and records it if it changes anything.
func (a *access) may(ctx context.Context, action gate.Action, op, object string, changes bool) error {
	by := by(ctx)
	return a.gateway.Operator().Admin(ctx, policy.AdminQuery{Who: by.Principal, Action: action, Op: op, Object: object, Operator: by.operator}, changes)
}
