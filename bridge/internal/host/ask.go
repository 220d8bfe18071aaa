package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/questions"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// asker asks the person at a client with a session, while the call waits.
type asker struct{ wire wire }

// Ask implements [gate.Asker].
func (a asker) Ask(ctx context.Context, p gate.Pending) (gate.Answer, error) {
	res, err := a.wire.ask(ctx, elicit.Method, elicit.Form(p))
	if err != nil {
		return gate.Answer{}, err
	}
	return elicit.Answer(res), nil
}

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

// complete makes of a result one that asks for nothing, whatever a server has
// put into it: there are clients that ask their person what inputRequests says
// without a look at resultType.
func (p peerInfo) complete(res gate.Doc) gate.Doc {
	if !res.Get("inputRequests").IsZero() || !res.Get("requestState").IsZero() {
		res = mcp.Without(res, "inputRequests", "requestState")
	}
	if !p.stateless || res.Get("resultType").Text() == "complete" {
		return res
	}
	return res.With("resultType", []byte(`"complete"`))
}

// checkBrought checks the shape of what a client brings with a call that it was
// asked to make again.
func checkBrought(params gate.Doc) error {
	if state := params.Get("requestState"); !state.IsZero() && (state.Kind() != gate.String || len(state.Text()) > sealed.Max) {
		return fmt.Errorf("requestState is no string of at most %d bytes", sealed.Max)
	}
	responses := params.Get("inputResponses")
	if !responses.IsZero() && responses.Kind() != gate.Object {
		return errors.New("inputResponses is no object")
	}
	n := 0
	for _, r := range responses.Members() {
		if n++; n > questions.Max {
			return fmt.Errorf("inputResponses has more than %d members", questions.Max)
		}
		if !elicit.IsResponse(r) {
			return errors.New("inputResponses has a member that is no result of elicitation/create, sampling/createMessage or roots/list")
		}
	}
	return nil
}

// answered returns the answer that a client brings with a call; nil if it brings
// none. One without the answer that it was asked for is asked again.
func (h *Host) answered(c *gate.Call, params gate.Doc) *gate.Answered {
	state, responses := params.Get("requestState"), params.Get("inputResponses")
	if state.IsZero() && responses.IsZero() {
		return nil
	}
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
