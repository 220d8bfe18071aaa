package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// Evaluate decides on an input document.
func (e *Engine) Evaluate(ctx context.Context, text []byte) (ast.Object, gate.Decision, error) {
	in, err := gate.ParseDoc(text)
	if err != nil {
		return nil, gate.Decision{}, fmt.Errorf("input: %w", err)
	}
	if in.Kind() != doc.Object {
		return nil, gate.Decision{}, errors.New("input: expected a JSON object")
	}
	v, d, err := e.Decide(ctx, input.Doc(in).Value)
	if err != nil {
		return nil, gate.Decision{}, err
	}
	if !Within(gate.Action(in.Get("action").Text())) {
		d = d.Asked()
	}
	if d.Effect == gate.Deny && len(d.Reasons) == 0 {
		d.Reasons = []string{NothingAllows(used(in), cmp.Or(in.At("/principal/id").Text(), "nobody"))}
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
