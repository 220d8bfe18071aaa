package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/step"
)

// do carries out a call, and puts the gate's answer into the words of MCP.
func (cr *carrier) do(ctx context.Context, p sessions.Client, c gate.Call) (gate.Doc, error) {
	res, err := cr.cfg.Do(ctx, c)
	if err != nil {
		return cr.failed(ctx, p, c, err)
	}
	return p.Complete(res.Doc), nil
}

// failed answers a call that was refused, or that its server failed.
func (cr *carrier) failed(ctx context.Context, p sessions.Client, c gate.Call, err error) (gate.Doc, error) {
	if rpc, ok := errors.AsType[*mcp.Error](err); ok {
		return gate.Doc{}, rpc
	}
	var waits *gate.Pending
	if c.Reach().ByAnswer && c.Brought.Approval == nil && errors.As(err, &waits) && waits.CanAnswer { // who dismisses a question is not asked again
		return cr.inputRequired(&c, waits), nil
	}
	p.NoteScopes(err)
	var r *gate.Refusal
	if errors.As(err, &r) && (r.Step == step.Parse || r.Step == step.Lookup || r.Hidden) {
		if r.Step == step.Parse {
			return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + r.Reason}
		}
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %.200q", r.Name)}
	}
	if ctx.Err() != nil {
		return gate.Doc{}, ctx.Err()
	}
	return p.Complete(message.RefusalResult(c.ID, err)), nil
}

// Malformed refuses a call whose message is no acceptable JSON, and records it.
func (cr *carrier) Malformed(ctx context.Context, p sessions.Client, action gate.Action, name string, why error) {
	c := p.Call(action, name)
	c.Refused = why
	_, _ = cr.do(ctx, p, c) // refused at its first step, by Refused
}

// badState refuses a call for the state that it brings, and records it.
func (cr *carrier) badState(ctx context.Context, p sessions.Client, c *gate.Call, why error) error {
	cr.Malformed(ctx, p, c.Action, c.Name, why)
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + why.Error()}
}

// useError puts the error of a use into the words of MCP.
func useError(ctx context.Context, p sessions.Client, c *gate.Call, err error) error {
	p.NoteScopes(err)
	r, refused := errors.AsType[*gate.Refusal](err)
	rpc, ours := errors.AsType[*mcp.Error](err)
	switch {
	case ours:
		return rpc
	case refused && r.Step == step.Parse:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + r.Reason}
	case refused && (r.Step == step.Lookup || r.Hidden):
		return unknownError(p, c)
	case refused && r.Step == step.Pin && c.Action == gate.GetSkill:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: message.Public(err), Data: mcp.MustJSON(map[string]any{gate.MetaRefusal: message.RefusalOf(c.ID, err)})}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &mcp.Error{Code: message.CodeRefused, Message: message.Public(err), Data: mcp.MustJSON(map[string]any{gate.MetaRefusal: message.RefusalOf(c.ID, err)})}
}

// unknownError is the error of what does not exist, or is hidden.
func unknownError(p sessions.Client, c *gate.Call) error {
	if actions.IsMethod(c.Action) {
		return message.ErrNoMethod
	}
	what, code, data := "prompt", int64(mcp.CodeInvalidParams), []byte(nil)
	switch c.Action {
	case gate.ReadResource, gate.Subscribe:
		what, data = "resource", mcp.MustJSON(map[string]string{"uri": c.Name})
		if !p.Stateless {
			code = message.CodeNoResource
		}
	case gate.GetSkill:
		what = "skill"
	case gate.ReadDirectory:
		what = "directory of a skill"
	case gate.Complete:
		what = "prompt or template of resources"
	}
	return &mcp.Error{Code: code, Message: fmt.Sprintf("unknown %s %.200q", what, c.Name), Data: data}
}
