package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// Eval decides on an input document as policies see it, and returns the
// decision as a JSON object of effect, reasons, obligations and labels. It
// decides as [Engine.Authorize] does, but on any action, and takes the input as
// it is: what is missing there is undefined.
func Eval(ctx context.Context, e *Engine, input []byte) (decision []byte, err error) {
	defer recoverTo(&err, func() { decision = nil })
	v, d, err := e.evaluate(ctx, input)
	if err != nil {
		return nil, err
	}
	// The obligations as the policy wrote them: decode keeps the strictest.
	obligations, err := ast.JSON(v.Get(ast.InternedTerm("obligations")).Value)
	if err != nil {
		return nil, err
	}
	out := struct {
		Effect      gate.Effect `json:"effect"`
		Reasons     []string    `json:"reasons"`
		Scopes      []string    `json:"scopes,omitempty"`
		Obligations any         `json:"obligations"`
		Labels      gate.Labels `json:"labels"`
	}{d.Effect, d.Reasons, d.Scopes, obligations, append(gate.Labels{}, d.Labels...)}
	return json.Marshal(out)
}

// EvalValue is [Eval] for an input that marshals to a JSON object, such as a map or a
// struct, and returns the decision as the gate takes it: of several obligations of one kind that
// which is strictest.
func (e *Engine) EvalValue(ctx context.Context, input any) (d gate.Decision, err error) {
	defer recoverTo(&err, func() { d = gate.Decision{} })
	b, err := json.Marshal(input)
	if err != nil {
		return gate.Decision{}, fmt.Errorf("input: %w", err)
	}
	_, d, err = e.evaluate(ctx, b)
	return d, err
}

// evaluate decides on an input document.
func (e *Engine) evaluate(ctx context.Context, text []byte) (ast.Object, gate.Decision, error) {
	in, err := gate.ParseDoc(text)
	if err != nil {
		return nil, gate.Decision{}, fmt.Errorf("input: %w", err)
	}
	if in.Kind() != doc.Object {
		return nil, gate.Decision{}, errors.New("input: expected a JSON object")
	}
	v, d, err := e.decide(ctx, input.Doc(in).Value)
	if err != nil {
		return nil, gate.Decision{}, err
	}
	if !within(gate.Action(in.Get("action").Text())) {
		d = d.Asked()
	}
	if d.Effect == gate.Deny && len(d.Reasons) == 0 {
		d.Reasons = []string{nothingAllows(used(in), cmp.Or(in.At("/principal/id").Text(), "nobody"))}
	}
	return v, d, nil
}

// used names what an input is about.
func used(input gate.Doc) string {
	if action := input.Get("action").Text(); actions.IsHostCall(gate.Action(action)) {
		return action + " of " + cmp.Or(input.At("/tool/name").Text(), "a tool")
	} else if actions.IsPeerRequest(gate.Action(action)) {
		return action + " by server " + cmp.Or(input.Get("server").Text(), "of the call")
	}
	for _, pointer := range []string{"/tool/name", "/resource/uri", "/prompt/name", "/method/name", "/action"} {
		if s := input.At(pointer).Text(); s != "" {
			return s
		}
	}
	return "this"
}
