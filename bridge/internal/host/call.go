package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/step"
)

var noArguments = gate.MustDoc("{}")

// callTool answers tools/call.
func (h *Host) callTool(ctx context.Context, p client, params gate.Doc) (gate.Doc, error) {
	c := p.call(gate.CallTool, params.Get("name").Text())
	c.Args, c.Meta = params.Get("arguments"), params.Get("_meta")
	if c.Args.IsZero() { // equal, also for what is bound to the call
		c.Args = noArguments
	}
	client, asks := p.reached(ctx), h.terms.Load().Asks
	client.reach.Hears = p.channel != nil
	client.reach.ByAnswer = asks && p.stateless && elicit.Forms(c.Meta.Get(mcp.MetaCapabilities))
	client.reach.Approves = asks && p.asks() && elicit.Forms(p.capabilities)
	c.Client = client
	if task := params.Get("task"); !task.IsZero() && h.OffersTasks() && !p.stateless {
		return h.startTask(ctx, p, c, task)
	}
	res, err := h.carry(ctx, p, &c, params)
	if err != nil {
		res, err = h.connect(ctx, p, &c, params, err)
	}
	if err != nil {
		return h.failed(ctx, p, c, err)
	}
	if p.stateless && res.IsError && lacksCapability(res.Doc) {
		return gate.Doc{}, serverError(res.Doc)
	}
	return p.answer(res), nil
}

// do carries out a call, and puts what the gate says into the words of MCP.
func (h *Host) do(ctx context.Context, p client, c gate.Call) (gate.Doc, error) {
	res, err := h.cfg.Do(ctx, c)
	if err != nil {
		return h.failed(ctx, p, c, err)
	}
	return p.complete(res.Doc), nil
}

// failed answers a call that was refused, or that its server failed.
func (h *Host) failed(ctx context.Context, p client, c gate.Call, err error) (gate.Doc, error) {
	if rpc, ok := errors.AsType[*mcp.Error](err); ok {
		return gate.Doc{}, rpc
	}
	var waits *gate.Pending
	if c.Reach().ByAnswer && c.Brought.Approval == nil && errors.As(err, &waits) && waits.CanAnswer { // who dismisses a question is not asked again
		return h.inputRequired(&c, waits), nil
	}
	p.noteScopes(err)
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
	return p.complete(refusalResult(c.ID, err)), nil
}

// malformed refuses a call whose message is no acceptable JSON, and records it.
func (h *Host) malformed(ctx context.Context, p client, action gate.Action, name string, why error) {
	c := p.call(action, name)
	c.Refused = why
	_, _ = h.do(ctx, p, c) // refused at its first step, by Refused
}

// carry carries out a call whose server may ask its client something meanwhile. A result
// with InputRequired is what the client gets as it is. An error that is an [*mcp.Error] is
// the answer to the request.
func (h *Host) carry(ctx context.Context, p client, c *gate.Call, params gate.Doc) (gate.Result, error) {
	if !p.stateless {
		return h.cfg.Do(ctx, *c)
	}
	can := askable(c.Meta.Get(mcp.MetaCapabilities))
	state, responses := params.Get("requestState").Text(), params.Get("inputResponses")
	switch {
	case strings.HasPrefix(state, sealed.Parked):
		return h.unpark(ctx, p, c, state, responses)
	case strings.HasPrefix(state, sealed.Round):
		inside, err := h.states.OpenAs(sealed.Round, c, state)
		if err != nil {
			return gate.Result{}, h.badState(ctx, p, c, err)
		}
		c.Brought.State, c.Brought.Responses = string(inside), responses
	case strings.HasPrefix(state, sealed.Connect):
		if _, err := h.states.OpenAs(sealed.Connect, c, state); err != nil {
			return gate.Result{}, h.badState(ctx, p, c, err)
		}
	case h.asksAbout(c) && (state != "" || !responses.Get(askedKey).IsZero()):
		c.Brought.Approval = h.answered(c, params)
	case state != "":
		return gate.Result{}, h.badState(ctx, p, c, sealed.ErrForeign)
	case !can.IsZero():
		c.Brought.Responses = responses
	}
	mayBeTask := h.mayBeTask(ctx, c)
	if can.IsZero() {
		c.Brought.State, c.Brought.Responses = "", gate.Doc{} // nobody has asked it for anything
	}
	if can.IsZero() && !mayBeTask {
		return h.cfg.Do(ctx, *c)
	}
	return h.park(ctx, p, c, can, mayBeTask)
}

// sealed is a result whose state, which is its server's own, the client can neither read
// nor bring back with another call.
func (h *Host) sealed(c *gate.Call, res gate.Result) gate.Result {
	state := res.Doc.Get("requestState")
	if res.InputRequired && state.Kind() == doc.String {
		ours := h.states.SealAs(sealed.Round, c, []byte(state.Text()), time.Now().Add(roundTime))
		res.Doc = res.Doc.With("requestState", mcp.MustJSON(ours))
	}
	return res
}

// asksAbout reports whether a person is asked about such calls by the answer to them.
func (h *Host) asksAbout(c *gate.Call) bool { return h.terms.Load().Asks && c.Action == gate.CallTool }

// badState refuses a call for the state that it brings, and records it.
func (h *Host) badState(ctx context.Context, p client, c *gate.Call, why error) error {
	h.malformed(ctx, p, c.Action, c.Name, why)
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + why.Error()}
}

// roundTime is how long a server's own state is good for: a person may have to
// fill in a form first.
const roundTime = time.Hour
