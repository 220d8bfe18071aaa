package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config/except"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/hook"
)

// backend answers the control socket.
type backend struct{ app *App }

// Handle implements [control.Backend].
func (b backend) Handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	defer b.app.clients.enter()()
	answer, err := b.handle(ctx, method, params)
	return answer, wire(err)
}

func (b backend) handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	a := b.app
	switch method {
	case methodStatus:
		s := a.Status()
		s.Running = !a.passing
		return s, nil
	case methodTools:
		return given(params, func(r toolsRequest) (any, error) { return a.Tools(ctx, r.As, r.All) })
	case methodPause:
		return given(params, func(r pauseRequest) (any, error) { return a.Pause(ctx, r.Server, r.Resume) })
	case methodRestart:
		return given(params, func(r pauseRequest) (any, error) { return nil, RestartServer(ctx, a, r.Server, byOperator) })
	case methodOthers:
		return given(params, func(r toolsRequest) (any, error) { return a.Features(ctx, r.As, r.All) })
	case methodSkills:
		return given(params, func(r toolsRequest) (any, error) { return a.Skills(ctx, r.As) })
	case methodCall:
		return given(params, func(r CallRequest) (any, error) {
			if control.Listens(ctx) {
				r.Progress = func(p Progress) { control.Note(ctx, p) }
			}
			res, err := a.Call(ctx, r)
			return callAnswer{res.Doc.Raw(), res.IsError}, err
		})
	case methodDestinations:
		return a.Destinations(ctx)
	case methodRevoke:
		return given(params, func(r revokeRequest) (any, error) { return a.RevokeDestinations(ctx, r.ID) })
	case methodApprovals:
		return a.Approvals(ctx)
	case methodApproval:
		return given(params, func(r DecideRequest) (any, error) { return a.Approval(ctx, r.ID) })
	case methodDecide:
		return given(params, func(r DecideRequest) (any, error) { return a.Decide(ctx, r) })
	case methodPins, methodPinReview, methodPinReload, methodPinApprove:
		return given(params, func(r pinRequest) (any, error) { return a.handlePins(ctx, method, r) })
	case methodKeyCreate:
		return given(params, func(r KeyRequest) (any, error) { return a.CreateKey(ctx, r) })
	case methodKeys:
		return a.Keys(ctx)
	case methodKeyRevoke:
		return given(params, func(r keyRequest) (any, error) { return a.RevokeKey(ctx, r.ID) })
	case methodAuthRevoke:
		return given(params, func(r RevokeRequest) (any, error) { return a.Revoke(ctx, r) })
	case methodBreakGlass:
		return given(params, func(r GlassRequest) (any, error) { return a.BreakGlass(ctx, r) })
	case methodWho:
		return given(params, func(r WhoRequest) (any, error) { return a.WhoAmI(ctx, r) })
	case methodAuthCheck:
		return a.AuthCheck(ctx)
	case methodLoginBegin:
		return given(params, func(r LoginRequest) (any, error) { return a.BeginLogin(ctx, r) })
	case methodLoginEnd:
		return given(params, func(r LoginRequest) (any, error) { return a.EndLogin(ctx, r) })
	case methodLogins:
		return a.Logins(ctx)
	case methodLogout:
		return given(params, func(r LoginRequest) (any, error) { return a.Logout(ctx, r) })
	case methodSessions:
		return a.Sessions(ctx)
	case methodReset:
		return given(params, func(r resetRequest) (any, error) { return a.ResetSession(ctx, r.Session) })
	case methodExceptions:
		return given(params, func(f except.Found) (any, error) { return a.Exceptions(ctx, f) })
	case methodExcept:
		return given(params, func(r ExceptRequest) (any, error) { return a.Except(ctx, r) })
	case methodScan:
		return given(params, func(r scanRequest) (any, error) { return a.Scan(ctx, r.Server) })
	case hook.Method:
		return given(params, func(r hook.Request) (any, error) { return a.Hook(ctx, r) })
	case methodSignIn:
		return a.SignIn()
	case methodReload:
		return struct{}{}, a.reloadPolicy(ctx)
	default:
		return nil, fmt.Errorf("the running gateway does not know %q; it may be of another version", method)
	}
}

// given answers a request by its parameters.
func given[T any](params json.RawMessage, answer func(T) (any, error)) (any, error) {
	var r T
	if err := json.Unmarshal(params, &r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return answer(r)
}

// Client implements [control.Backend].
func (b backend) Client(as string, groups []string) (func(context.Context, io.Reader, io.Writer) error, error) {
	who, err := naming.Offered(b.app.config.Load().cfg, as, groups)
	if err != nil {
		return nil, wire(err)
	}
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		defer b.app.clients.enter()()
		b.app.clients.came()
		return b.app.gateway.Serve(ctx, who, in, out)
	}, nil
}
