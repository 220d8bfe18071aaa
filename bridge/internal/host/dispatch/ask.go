package dispatch

import (
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// askedKey is the name of the one request in an answer that asks for more.
const askedKey = "approval"

// inputRequired is the result of a call of a client without a session which a
// person has to approve first (MCP 2026-07-28, basic/patterns, multi round-trip
// requests). The client calls again with the answer and with the state.
func (cr *carrier) inputRequired(c *gate.Call, p *gate.Pending) gate.Doc {
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"resultType":    "input_required",
		"inputRequests": map[string]any{askedKey: map[string]any{"method": elicit.Method, "params": elicit.Form(*p)}},
		"requestState":  cr.states.Seal(c, p.ID, p.Expires),
	})))
}

// answered returns the answer that a client brings with a call; nil if it brings a state
// without the answer that it was asked for: it is asked again.
func (cr *carrier) answered(c *gate.Call, params gate.Doc) *gate.Answered {
	state, responses := params.Get("requestState"), params.Get("inputResponses")
	id, err := cr.states.Open(c, state.Text())
	if err != nil {
		return &gate.Answered{ID: id, Err: err}
	}
	for name := range responses.Members() {
		if name != askedKey {
			return &gate.Answered{ID: id, Err: fmt.Errorf("inputResponses has %.100q, which was not asked for", name)}
		}
	}
	given := responses.Get(askedKey)
	if given.IsZero() {
		return nil
	}
	return &gate.Answered{ID: id, Answer: elicit.Answer(given)}
}

// sealed is a result whose state, which is its server's own, the client can neither read
// nor bring back with another call.
func (cr *carrier) sealed(c *gate.Call, res gate.Result) gate.Result {
	state := res.Doc.Get("requestState")
	if res.InputRequired && state.Kind() == doc.String {
		ours := cr.states.SealAs(sealed.Round, c, []byte(state.Text()), time.Now().Add(roundTime))
		res.Doc = res.Doc.With("requestState", mcp.MustJSON(ours))
	}
	return res
}

// roundTime is how long a server's own state is good for: a person may have to
// fill in a form first.
const roundTime = time.Hour
