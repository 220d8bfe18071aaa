package dispatch

import (
	"context"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/parking"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// A carrier carries out calls whose servers may ask their clients something meanwhile.
type carrier struct {
	*backend
	place     *Place
	states    sealed.Sealer
	parking   *parking.Lot[*parked]
	taskCalls taskCalls
}

// carry carries out a call whose server may ask its client something meanwhile. A result
// with InputRequired is what the client gets as it is. An error that is an [*mcp.Error] is
// the answer to the request.
func (cr *carrier) carry(ctx context.Context, p sessions.Client, c *gate.Call, params gate.Doc) (gate.Result, error) {
	if !p.Stateless {
		return cr.cfg.Do(ctx, *c)
	}
	can := sessions.Askable(c.Meta.Get(mcp.MetaCapabilities))
	state, responses := params.Get("requestState").Text(), params.Get("inputResponses")
	switch {
	case strings.HasPrefix(state, sealed.Parked):
		return cr.unpark(ctx, p, c, state, responses)
	case strings.HasPrefix(state, sealed.Round):
		inside, err := cr.states.OpenAs(sealed.Round, c, state)
		if err != nil {
			return gate.Result{}, cr.badState(ctx, p, c, err)
		}
		c.Brought.State, c.Brought.Responses = string(inside), responses
	case strings.HasPrefix(state, sealed.Connect):
		if _, err := cr.states.OpenAs(sealed.Connect, c, state); err != nil {
			return gate.Result{}, cr.badState(ctx, p, c, err)
		}
	case cr.asksAbout(c) && (state != "" || !responses.Get(askedKey).IsZero()):
		c.Brought.Approval = cr.answered(c, params)
	case state != "":
		return gate.Result{}, cr.badState(ctx, p, c, sealed.ErrForeign)
	case !can.IsZero():
		c.Brought.Responses = responses
	}
	mayBeTask := cr.mayBeTask(ctx, c)
	if can.IsZero() {
		c.Brought.State, c.Brought.Responses = "", gate.Doc{} // the client was not asked for anything
	}
	if can.IsZero() && !mayBeTask {
		return cr.cfg.Do(ctx, *c)
	}
	return cr.park(ctx, p, c, can, mayBeTask)
}

// asksAbout reports whether a person is asked about such calls by the answer to them.
func (cr *carrier) asksAbout(c *gate.Call) bool {
	return cr.terms.Load().Asks && c.Action == gate.CallTool
}
