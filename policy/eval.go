package policy

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
)

// Eval decides on an input document as policies see it, and returns the
// decision as a JSON object of effect, reasons, obligations and labels. It
// decides as [Engine.Authorize] does, but on any action, and takes the input as
// it is: what is missing there is undefined.
func Eval(ctx context.Context, e *Engine, input []byte) (decision []byte, err error) {
	defer engine.Recover(&err, func() { decision = nil })
	v, d, err := e.engine.Evaluate(ctx, input)
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
	defer engine.Recover(&err, func() { d = gate.Decision{} })
	b, err := json.Marshal(input)
	if err != nil {
		return gate.Decision{}, fmt.Errorf("input: %w", err)
	}
	_, d, err = e.engine.Evaluate(ctx, b)
	return d, err
}
