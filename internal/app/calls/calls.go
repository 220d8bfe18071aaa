// Package calls makes the calls that commands ask for, and says in words for operators why one was not carried out.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/product"
)

// Do is a call by a command. [Call] asks for it.
var Do = operation.New[Request, answer]("call")

// answer is the result of a call.
type answer struct {
	Result  json.RawMessage `json:"result"`
	IsError bool            `json:"is_error"`
}

// Call has a gateway make a call: see [Calls.Call].
func Call(ctx context.Context, g operation.Gateway, r Request) (gate.Result, error) {
	a, err := Do.Ask(ctx, g, r)
	if err != nil {
		return gate.Result{}, err
	}
	doc, err := gate.ParseDoc(a.Result)
	return gate.Result{Doc: doc, IsError: a.IsError}, err
}

// A Request is one call by a command.
type Request struct {
	Tool string `json:"tool"`
	Args string `json:"args"` // JSON; anything else is refused and recorded
	As   string `json:"as"`   // principal; "" is local
	// Progress gets how far the server says that it is; nil if no one wants to know.
	// It is not called concurrently.
	Progress func(Progress) `json:"-"`
}

// Listener returns what hears of the progress, as it comes over the control socket; nil if nothing does.
func (r Request) Listener() func(json.RawMessage) {
	if r.Progress == nil {
		return nil
	}
	return func(b json.RawMessage) {
		var p Progress
		if json.Unmarshal(b, &p) == nil {
			r.Progress(p)
		}
	}
}

// Progress is how far a call is (MCP, notifications/progress).
type Progress struct {
	Done    float64 `json:"progress"`
	Total   float64 `json:"total,omitempty"` // 0 if it is not known
	Message string  `json:"message,omitempty"`
}

// commandClient is the client of a call by a command.
type commandClient struct {
	gate.Nobody
	reach    gate.Reach
	progress func(Progress)
}

// Reach implements [gate.Client].
func (c *commandClient) Reach() gate.Reach { return c.reach }

// Notify implements [gate.Client].
func (c *commandClient) Notify(_ context.Context, method string, params gate.Doc) {
	var p Progress
	if method == "notifications/progress" && json.Unmarshal(params.Raw(), &p) == nil {
		c.progress(p)
	}
}

// A Error says why a call was not carried out, in words for the operator.
type Error struct {
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	RecordID string `json:"record_id"`
	Server   string `json:"server,omitempty"`
	Tool     string `json:"tool"`
	// Retryable says that the same call can succeed later, RetryAfter after how long if that is known.
	Retryable  bool     `json:"retryable"`
	RetryAfter int64    `json:"retry_after_ms,omitempty"`
	Violations []string `json:"violations,omitempty"` // where the arguments break the schema, JSON Pointers
	Invoked    bool     `json:"invoked,omitempty"`    // its server has had it, and may have carried it out
	Approval   string   `json:"approval,omitempty"`   // for which the call waits
	// Destinations are those that an approval can be for, until the session ends.
	Destinations []string `json:"destinations,omitempty"`
	// Further values that the approval can be for as well.
	Beside   []string `json:"beside,omitempty"`
	Question string   `json:"-"` // what a person would have to approve, in words
	Remedy   string   `json:"-"` // the command that would allow it
	Cause    string   `json:"-"` // what lies behind; "" if that is all
}

func (e *Error) Error() string { return e.Tool + ": " + e.Code + ": " + e.Reason }

// Refused reports whether the gate refused the call, rather than that something
// went wrong.
func (e *Error) Refused() bool { return strings.HasPrefix(e.Code, "refused_") && !e.Invoked }

// Gateway is the one that carries calls out.
type Gateway interface {
	Do(context.Context, gate.Call) (gate.Result, error)
	Approvals() *approval.Queue
	// Resolve returns the name of the only tool that a principal is offered and that has a name.
	Resolve(ctx context.Context, who *gate.Principal, name string) (string, error)
}

// Calls are those that commands make.
type Calls struct {
	Gateway Gateway
	Config  func() *config.Config // in use
}

// Operations adds those of calls to a table.
func (all *Calls) Operations(t operation.Table) {
	Do.Add(t, func(ctx context.Context, r Request) (answer, error) {
		if r.Progress == nil && control.Listens(ctx) {
			r.Progress = func(p Progress) { control.Note(ctx, p) }
		}
		res, err := all.Call(ctx, r)
		return answer{res.Doc.Raw(), res.IsError}, err
	})
}

// Call carries out one call. The error is a [*Error] if the gate or the
// server did not, and a [*find.AmbiguousError] if several tools have the name.
func (all *Calls) Call(ctx context.Context, r Request) (gate.Result, error) {
	who, err := naming.Principal(all.Config(), r.As)
	if err != nil {
		return gate.Result{}, err
	}
	name, err := all.Gateway.Resolve(ctx, who, r.Tool)
	if err != nil {
		return gate.Result{}, err
	}
	c := gate.Call{
		ID: gate.NewID(), Action: gate.CallTool, Name: name, Who: who,
		Session: gate.SessionKey{Owner: who.Owner}, ClientName: product.Name + " call", ClientVersion: product.Version(),
	}
	client := &commandClient{progress: r.Progress}
	c.Client = client
	if q := all.Gateway.Approvals(); q != nil {
		client.reach.ByAnswer = q.Uses(approval.CLI) // a command does not wait: it asks, or is given again
	}
	if r.Progress != nil {
		client.reach.Hears, c.Meta = true, gate.MustDoc(fmt.Sprintf(`{"progressToken":%q}`, c.ID))
	}
	if c.Args, err = gate.ParseDoc([]byte(r.Args)); err != nil {
		c.Refused = err
	}
	res, err := all.Gateway.Do(ctx, c)
	if err == nil {
		return res, nil
	}
	of := gateway.AsError(c, err)
	ce := &Error{
		Code: gate.Code(err), Reason: of.Message, RecordID: gate.RecordID(c.ID, err), Server: of.Server, Tool: name,
		Retryable: of.Retryable(), RetryAfter: of.RetryAfter.Milliseconds(),
	}
	ce.Violations, _ = of.Details["violations"].([]string)
	var refusal *gate.Refusal
	if errors.As(err, &refusal) {
		ce.Reason, ce.Remedy, ce.Invoked = refusal.Reason, refusal.Remedy, refusal.Invoked
		pending, waits := errors.AsType[*gate.Pending](err)
		switch {
		case waits:
			ce.Approval, ce.Question, ce.Destinations, ce.Beside = pending.ID, pending.Inquiry.Text(), pending.Destinations, pending.Beside
		case refusal.Hidden && refusal.Step == step.Authorize && refusal.Err != nil: // an operator may know what a client may not
			ce.Reason = refusal.Err.Error()
		case refusal.Err != nil:
			ce.Cause = refusal.Err.Error()
		}
	} else {
		ce.Cause = err.Error()
	}
	return gate.Result{}, ce
}
