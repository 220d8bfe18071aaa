package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/hook"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// The methods on the control socket.
const (
	methodStatus = "status"
	methodTools  = "tools"
	methodOthers = "features"
	methodPause  = "pause"
	methodCall   = "call"
	methodReload = "reload"
	methodSignIn = "sign-in"

	methodScan = "scan"

	methodKeyCreate  = "key-create"
	methodKeys       = "keys"
	methodKeyRevoke  = "key-revoke"
	methodAuthRevoke = "auth-revoke"
	methodBreakGlass = "auth-break-glass"
	methodWho        = "whoami"
	methodAuthCheck  = "auth-check"

	methodLoginBegin = "login-begin"
	methodLoginEnd   = "login-end"
	methodLogins     = "logins"
	methodLogout     = "logout"

	methodSessions = "sessions"
	methodReset    = "reset"

	methodApprovals = "approvals"
	methodApproval  = "approval"
	methodDecide    = "decide"

	methodDestinations = "destinations"
	methodRevoke       = "destinations-revoke"

	methodPins        = "pins"
	methodPinDiff     = "pin-diff"
	methodPinApproval = "pin-approval"
	methodPinReload   = "pin-reload"
)

type toolsRequest struct {
	As  string `json:"as"`
	All bool   `json:"all"`
}

type callAnswer struct {
	Result  json.RawMessage `json:"result"`
	IsError bool            `json:"is_error"`
}

// callFailure is a [CallError] with what its JSON for users leaves out.
type callFailure struct {
	CallError
	Tool     string `json:"tool"`
	Remedy   string `json:"remedy"`
	Cause    string `json:"cause"`
	Question string `json:"question"`
}

// The codes of errors that are of the same type on both sides of the socket.
const (
	codeCall      = "call"
	codePrincipal = "principal"
	codeApproval  = "approval" // a *gate.NotApproved
	codeAmbiguous = "ambiguous"
	codeNoPin     = "no-pin" // wraps lock.ErrNothing
	codeKey       = "key"    // a *KeyError
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
	case methodOthers:
		return given(params, func(r toolsRequest) (any, error) { return a.Features(ctx, r.As, r.All) })
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
		return given(params, func(r DecideRequest) (any, error) { return a.Approval(r.ID) })
	case methodDecide:
		return given(params, func(r DecideRequest) (any, error) { return a.Decide(ctx, r) })
	case methodPins, methodPinDiff, methodPinApproval, methodPinReload:
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

// wire makes an error that crosses the socket, and unwire the same of it again.
func wire(err error) error {
	var call *CallError
	var who *PrincipalError
	var unapproved *gate.NotApproved
	var several *gateway.AmbiguousError
	var key *KeyError
	e := &control.Error{}
	switch {
	case errors.As(err, &call):
		e.Code = codeCall
		e.Detail, _ = json.Marshal(callFailure{*call, call.tool, call.Remedy, call.Cause, call.Question}) // strings only
	case errors.As(err, &who):
		e.Code = codePrincipal
		e.Detail, _ = json.Marshal(who) // strings only
	case errors.As(err, &unapproved):
		e.Code = codeApproval
	case errors.Is(err, lock.ErrNothing):
		e.Code = codeNoPin
	case errors.As(err, &key):
		e.Code = codeKey
	case errors.As(err, &several):
		e.Code = codeAmbiguous
		e.Detail, _ = json.Marshal(several) // strings only
	default:
		return err
	}
	e.Message = err.Error()
	return e
}

func unwire(err error) error {
	var e *control.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case codeCall:
		var f callFailure
		if err := json.Unmarshal(e.Detail, &f); err != nil {
			return err
		}
		f.CallError.tool, f.CallError.Remedy, f.CallError.Cause, f.CallError.Question = f.Tool, f.Remedy, f.Cause, f.Question
		return &f.CallError
	case codePrincipal:
		who := new(PrincipalError)
		if err := json.Unmarshal(e.Detail, who); err != nil {
			return err
		}
		return who
	case codeAmbiguous:
		several := new(gateway.AmbiguousError)
		if err := json.Unmarshal(e.Detail, several); err != nil {
			return err
		}
		return several
	case codeApproval:
		return &gate.NotApproved{Reason: e.Message}
	case codeKey:
		return &KeyError{e.Message}
	case codeNoPin:
		return &nothingError{e.Message}
	}
	return err
}

// nothingError is a [lock.ErrNothing] of the other side.
type nothingError struct{ text string }

func (e *nothingError) Error() string { return e.text }
func (e *nothingError) Unwrap() error { return lock.ErrNothing }

// Client implements [control.Backend].
func (b backend) Client(as string, groups []string) (func(context.Context, io.Reader, io.Writer) error, error) {
	who, err := offered(b.app.config.Load().cfg, as, groups)
	if err != nil {
		return nil, wire(err)
	}
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		defer b.app.clients.enter()()
		return b.app.gateway.Serve(ctx, who, in, out)
	}, nil
}

// A Remote is the gateway that runs on a configuration, in another process.
type Remote struct{ client *control.Client }

// Dial returns the gateway that runs on a configuration. The error is
// [control.ErrNotRunning] if there is none.
func Dial(ctx context.Context, cfg *config.Config) (*Remote, error) {
	c, err := control.Dial(ctx, cfg.State)
	if err != nil {
		return nil, err
	}
	return &Remote{c}, nil
}

// Close frees the connection.
func (r *Remote) Close() { r.client.Close() }

// Status tells how the gateway is.
func (r *Remote) Status(ctx context.Context) (*Status, error) {
	s := new(Status)
	err := r.call(ctx, methodStatus, nil, s)
	return s, err
}

// Tools returns what [App.Tools] does.
func (r *Remote) Tools(ctx context.Context, as string, all bool) ([]Tool, error) {
	var tools []Tool
	err := r.call(ctx, methodTools, toolsRequest{as, all}, &tools)
	return tools, err
}

// Features returns what [App.Features] does.
func (r *Remote) Features(ctx context.Context, as string, all bool) ([]Tool, error) {
	var list []Tool
	err := r.call(ctx, methodOthers, toolsRequest{as, all}, &list)
	return list, err
}

// Call does what [App.Call] does.
func (r *Remote) Call(ctx context.Context, c CallRequest) (gate.Result, error) {
	var answer callAnswer
	var note func(json.RawMessage)
	if c.Progress != nil {
		note = func(b json.RawMessage) {
			var p Progress
			if json.Unmarshal(b, &p) == nil {
				c.Progress(p)
			}
		}
	}
	if err := r.client.CallNoted(ctx, methodCall, c, &answer, note); err != nil {
		return gate.Result{}, unwire(err)
	}
	doc, err := gate.ParseDoc(answer.Result)
	return gate.Result{Doc: doc, IsError: answer.IsError}, err
}

// Reload makes the gateway read its policy now rather than within a second.
func (r *Remote) Reload(ctx context.Context) error {
	return r.call(ctx, methodReload, nil, new(struct{}))
}

// Approvals returns what [App.Approvals] does.
func (r *Remote) Approvals(ctx context.Context) ([]Approval, error) {
	var all []Approval
	err := r.call(ctx, methodApprovals, nil, &all)
	return all, err
}

// Approval returns what [App.Approval] does.
func (r *Remote) Approval(ctx context.Context, id string) (*Approval, error) {
	one := new(Approval)
	err := r.call(ctx, methodApproval, DecideRequest{ID: id}, one)
	return one, err
}

// Decide does what [App.Decide] does.
func (r *Remote) Decide(ctx context.Context, d DecideRequest) (*Decided, error) {
	done := new(Decided)
	err := r.call(ctx, methodDecide, d, done)
	return done, err
}

// Relay connects an MCP client that speaks on in and out, for the principal as, which
// is offered what is in one of the groups, or all if there are none, until the gateway
// ends the connection, as it does after the end of in.
func (r *Remote) Relay(ctx context.Context, as string, groups []string, in io.Reader, out io.Writer) error {
	return unwire(r.client.Relay(ctx, as, groups, in, out))
}

func (r *Remote) call(ctx context.Context, method string, params, result any) error {
	return unwire(r.client.Call(ctx, method, params, result))
}
