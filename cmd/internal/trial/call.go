package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A Refused call is one that the gate would refuse as well.
type Refused struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

func (r *Refused) Error() string { return r.Code + ": " + r.Reason }

// Tool returns the tool of a module with a name; "" names the only one.
func Tool(m *sandbox.Module, name string) (sandbox.Tool, error) {
	var names []string
	for _, t := range m.Tools() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	if name == "" && len(names) == 1 {
		return m.Tools()[0], nil
	}
	return sandbox.Tool{}, fmt.Errorf("name one of the module's tools: %s", strings.Join(names, ", "))
}

// Call calls a tool of a module as the gate does: its arguments are coerced to the input
// schema and held against it, and what it answers is held against the output schema. The
// error is a [*Refused] or that of [sandbox.Module.Call].
func Call(ctx context.Context, m *sandbox.Module, tool sandbox.Tool, args []byte, host sandbox.Host) (sandbox.Result, error) {
	if len(args) == 0 {
		args = []byte("{}")
	}
	args, err := acceptable(tool, args)
	if err != nil {
		return sandbox.Result{}, &Refused{"refused_" + string(step.ValidateInput), err.Error()}
	}
	res, err := m.Call(ctx, tool.Name, args, sandbox.CallConfig{Host: host})
	if err != nil {
		return res, err
	}
	if err := answers(tool, res); err != nil {
		return res, &Refused{"refused_" + string(step.ValidateOutput), err.Error()}
	}
	return res, nil
}

// acceptable returns the arguments as the tool gets them.
func acceptable(tool sandbox.Tool, args []byte) ([]byte, error) {
	given, err := gate.ParseDoc(args)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not acceptable JSON: %w", err)
	}
	if given.Kind() != doc.Object {
		return nil, errors.New("the arguments are not an object")
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
	given, _ = input.Coerce(given)
	if err := input.Validate(given); err != nil {
		return nil, fmt.Errorf("the arguments break the tool's input schema: %w; it takes %s", err, input.Takes())
	}
	return given.Raw(), nil
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
	got, err := gate.ParseDoc(res.Output)
	if err != nil {
		return fmt.Errorf("its output is not acceptable JSON: %w", err)
	}
	if res.Whole {
		got = got.Get("structuredContent")
	}
	if got.Kind() != doc.Object {
		return errors.New("the tool declares an output schema, and its output is not an object")
	}
	if err := output.Validate(got); err != nil {
		return fmt.Errorf("the output breaks the output schema that the tool declares: %w", err)
	}
	return nil
}

// Figures are what a call used.
type Figures struct {
	TookUS     int64  `json:"took_us"`
	Fuel       uint64 `json:"fuel"`
	MemoryPeak int64  `json:"memory_peak"` // bytes
	HostCalls  int    `json:"host_calls"`
}

// NewFigures returns those of a result.
func NewFigures(r sandbox.Result) Figures {
	return Figures{r.Took.Microseconds(), r.Fuel, r.MemoryPeak, r.HostCalls}
}
