package dispatch

import (
	"context"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// carry carries out a call whose server may ask its client something meanwhile. A result
// with InputRequired is what the client gets as it is. An error that is an [*mcp.Error] is
// the answer to the request.
func (d *Dispatcher) carry(ctx context.Context, p sessions.Client, c *gate.Call, params gate.Doc) (gate.Result, error) {
	if !p.Stateless {
		return d.cfg.Do(ctx, *c)
	}
	can := sessions.Askable(c.Meta.Get(mcp.MetaCapabilities))
	state, responses := params.Get("requestState").Text(), params.Get("inputResponses")
	switch {
	case strings.HasPrefix(state, sealed.Parked):
		return d.unpark(ctx, p, c, state, responses)
	case strings.HasPrefix(state, sealed.Round):
		inside, err := d.states.OpenAs(sealed.Round, c, state)
		if err != nil {
			return gate.Result{}, d.badState(ctx, p, c, err)
		}
		c.Brought.State, c.Brought.Responses = string(inside), responses
	case strings.HasPrefix(state, sealed.Connect):
		if _, err := d.states.OpenAs(sealed.Connect, c, state); err != nil {
			return gate.Result{}, d.badState(ctx, p, c, err)
		}
	case d.asksAbout(c) && (state != "" || !responses.Get(askedKey).IsZero()):
		c.Brought.Approval = d.answered(c, params)
	case state != "":
		return gate.Result{}, d.badState(ctx, p, c, sealed.ErrForeign)
	case !can.IsZero():
		c.Brought.Responses = responses
	}
	mayBeTask := d.mayBeTask(ctx, c)
	if can.IsZero() {
		c.Brought.State, c.Brought.Responses = "", gate.Doc{} // the client was not asked for anything
	}
	if can.IsZero() && !mayBeTask {
		return d.cfg.Do(ctx, *c)
	}
	return d.park(ctx, p, c, can, mayBeTask)
}

// asksAbout reports whether a person is asked about such calls by the answer to them.
func (d *Dispatcher) asksAbout(c *gate.Call) bool {
	return d.terms.Load().Asks && c.Action == gate.CallTool
}
