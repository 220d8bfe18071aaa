package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// methodElicit is the request by which a client asks its person, the same in
// the middle of a call and in an answer that asks for more.
const methodElicit = "elicitation/create"

// asker asks the person at a client with a session, while the call waits.
type asker struct{ wire wire }

// Ask implements [gate.Asker].
func (a asker) Ask(ctx context.Context, p gate.Pending) (gate.Answer, error) {
	res, err := a.wire.ask(ctx, methodElicit, form(p))
	if err != nil {
		return gate.Answer{}, err
	}
	return elicited(res), nil
}

// What a person can choose. It says all there is to say of itself: not every
// client shows the titles and descriptions of a form.
const (
	chooseOnce   = "approve"
	chooseNo     = "deny"
	chooseAlways = "approve always for this tool"
	chooseThere  = "approve this destination until the session ends"
)

// form is the parameters of a request to elicit a decision. Its schema is of the
// kind that all revisions with elicitation have: one string out of a list.
func form(p gate.Pending) gate.Doc {
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"mode": "form", "message": p.Text,
		"requestedSchema": map[string]any{
			"type": "object", "required": []string{"decision"},
			"properties": map[string]any{"decision": map[string]any{
				"type": "string", "title": "Decision", "enum": []string{chooseOnce, chooseNo, chooseAlways, chooseThere}[:3+min(1, len(p.Destinations))],
			}},
		},
	})))
}

// elicited reads the result of a request to elicit a decision. What is neither a
// clear yes nor a clear no is no answer: a client may show the form as it likes,
// and send what it likes.
func elicited(res gate.Doc) gate.Answer {
	switch res.Get("action").Text() {
	case "decline":
		return gate.Answer{Verdict: gate.Denied}
	case "accept":
		return choice(res.Get("content"))
	default:
		return gate.Answer{Verdict: gate.Dismissed}
	}
}

// choice reads a form that was filled in.
func choice(content gate.Doc) gate.Answer {
	for name := range content.Members() {
		if name != "decision" {
			return gate.Answer{Verdict: gate.Dismissed}
		}
	}
	answer, ok := map[string]gate.Answer{
		chooseOnce: {Verdict: gate.Approved}, chooseAlways: {Verdict: gate.Approved, Always: true},
		chooseThere: {Verdict: gate.Approved, Destinations: true}, chooseNo: {Verdict: gate.Denied},
	}[content.Get("decision").Text()]
	if !ok {
		answer.Verdict = gate.Dismissed
	}
	return answer
}

// elicits reports whether a client that declares these capabilities can put a
// form to its person. One that names no mode can (MCP 2025-11-25,
// client/elicitation, "Capabilities").
func elicits(capabilities gate.Doc) bool {
	e := capabilities.Get("elicitation")
	return e.Kind() == gate.Object && (e.Get("url").IsZero() || !e.Get("form").IsZero())
}

// askedKey is the name of the one request in an answer that asks for more.
const askedKey = "approval"

// inputRequired is the result of a call of a client without a session which a
// person has to approve first (MCP 2026-07-28, basic/patterns, multi round-trip
// requests). The client calls again with the answer and with the state.
func (h *Host) inputRequired(c *gate.Call, p *gate.Pending) gate.Doc {
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"resultType":    "input_required",
		"inputRequests": map[string]any{askedKey: map[string]any{"method": methodElicit, "params": form(*p)}},
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

// maxResponses bounds the answers that a client brings with a call.
const maxResponses = gate.MaxRoundRequests

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
		if n++; n > maxResponses {
			return fmt.Errorf("inputResponses has more than %d members", maxResponses)
		}
		if !isResponse(r) {
			return errors.New("inputResponses has a member that is no result of elicitation/create, sampling/createMessage or roots/list")
		}
	}
	return nil
}

// isResponse checks the shape of an answer, as far as clients' libraries read it. What it was the
// answer to is not known yet.
func isResponse(r gate.Doc) bool {
	content, meta := r.Get("content"), r.Get("_meta")
	switch {
	case !meta.IsZero() && meta.Kind() != gate.Object:
		return false
	case r.Get("roots").Kind() == gate.Array:
		return true
	case r.Get("role").Kind() == gate.String:
		return content.Kind() == gate.Object || content.Kind() == gate.Array
	default:
		return r.Get("action").Kind() == gate.String && (content.IsZero() || content.Kind() == gate.Object)
	}
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
	return &gate.Answered{ID: id, Answer: elicited(given)}
}
