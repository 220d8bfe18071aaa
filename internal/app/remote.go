package app

import (
	"context"
	"encoding/json"
	"io"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
)

// The methods on the control socket.
const (
	methodStatus  = "status"
	methodTools   = "tools"
	methodOthers  = "features"
	methodSkills  = "skills"
	methodPause   = "pause"
	methodRestart = "restart"
	methodCall    = "call"
	methodReload  = "reload"
	methodSignIn  = "sign-in"

	methodScan = "scan"

	methodExceptions = "exceptions"
	methodExcept     = "except"

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

	methodPins       = "pins"
	methodPinReview  = "pin-review"
	methodPinReload  = "pin-reload"
	methodPinApprove = "pin-approve"
)

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

func (r *Remote) call(ctx context.Context, method string, params, result any) error {
	return unwire(r.client.Call(ctx, method, params, result))
}

// asked is the answer of the gateway that runs.
func asked[T any](ctx context.Context, r *Remote, method string, params any) (to T, err error) {
	err = r.call(ctx, method, params, &to)
	return to, err
}

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

type toolsRequest struct {
	As  string `json:"as"`
	All bool   `json:"all"`
}

type callAnswer struct {
	Result  json.RawMessage `json:"result"`
	IsError bool            `json:"is_error"`
}
