package host

import (
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// askedKey is the name of the one request in an answer that asks for more.
const askedKey = "approval"

// inputRequired is the result of a call of a client without a session which a
// person has to approve first (MCP 2026-07-28, basic/patterns, multi round-trip
// requests). The client calls again with the answer and with the state.
func (h *Host) inputRequired(c *gate.Call, p *gate.Pending) gate.Doc {
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"resultType":    "input_required",
		"inputRequests": map[string]any{askedKey: map[string]any{"method": elicit.Method, "params": elicit.Form(*p)}},
		"requestState":  h.states.Seal(c, p.ID, p.Expires),
	})))
}

// answered returns the answer that a client brings with a call; nil if it brings a state
// without the answer that it was asked for: it is asked again.
func (h *Host) answered(c *gate.Call, params gate.Doc) *gate.Answered {
	state, responses := params.Get("requestState"), params.Get("inputResponses")
	id, err := h.states.Open(c, state.Text())
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
