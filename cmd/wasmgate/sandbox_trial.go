package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A refused call is one that the gate would refuse as well.
type refused struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

func (r *refused) Error() string { return r.Code + ": " + r.Reason }

// callTool calls a tool of a module as the gate does: its arguments are coerced to the input
// schema and held against it, and what it answers is held against the output schema. The
// error is a [*refused] or that of [sandbox.Module.Call].
func callTool(ctx context.Context, m *sandbox.Module, tool sandbox.Tool, args []byte, host sandbox.Host) (sandbox.Result, error) {
	if len(args) == 0 {
		args = []byte("{}")
	}
	args, err := acceptable(tool, args)
	if err != nil {
		return sandbox.Result{}, &refused{"refused_" + string(gate.StepValidateInput), err.Error()}
	}
	res, err := m.Call(ctx, tool.Name, args, sandbox.CallConfig{Host: host})
	if err != nil {
		return res, err
	}
	if err := answers(tool, res); err != nil {
		return res, &refused{"refused_" + string(gate.StepValidateOutput), err.Error()}
	}
	return res, nil
}

// acceptable returns the arguments as the tool gets them.
func acceptable(tool sandbox.Tool, args []byte) ([]byte, error) {
	doc, err := gate.ParseDoc(args)
	if err != nil {
		return nil, fmt.Errorf("the arguments are no acceptable JSON: %w", err)
	}
	if doc.Kind() != gate.Object {
		return nil, errors.New("the arguments are no object")
	}
	raw, err := gate.ParseDoc(tool.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its inputSchema: %w", err)
	}
	raw, _ = schema.Repair(raw)
	input, err := schema.Compile(raw)
	if err != nil {
		return nil, fmt.Errorf("its inputSchema: %w", err)
	}
	doc, _ = input.Coerce(doc)
	if err := input.Validate(doc); err != nil {
		return nil, fmt.Errorf("the arguments break the tool's input schema: %w; it takes %s", err, input.Takes())
	}
	return doc.Raw(), nil
}

// answers holds a result against what its tool declares.
func answers(tool sandbox.Tool, res sandbox.Result) error {
	if tool.OutputSchema == nil || res.IsError {
		return nil
	}
	raw, err := gate.ParseDoc(tool.OutputSchema)
	if err != nil {
		return fmt.Errorf("its outputSchema: %w", err)
	}
	output, err := schema.Compile(raw)
	if err != nil {
		return fmt.Errorf("its outputSchema: %w", err)
	}
	doc, err := gate.ParseDoc(res.Output)
	if err != nil {
		return fmt.Errorf("its output is no acceptable JSON: %w", err)
	}
	if res.Whole {
		doc = doc.Get("structuredContent")
	}
	if doc.Kind() != gate.Object {
		return errors.New("the tool declares an output schema, and its output is no object")
	}
	if err := output.Validate(doc); err != nil {
		return fmt.Errorf("the output breaks the output schema that the tool declares: %w", err)
	}
	return nil
}
