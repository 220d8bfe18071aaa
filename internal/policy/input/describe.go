package input

import (
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/actions"
)

// Actions returns all that input.action can be, but for methods that MCP does not have.
func Actions() []string {
	var names []string
	for _, f := range all {
		for _, a := range f.actions {
			names = append(names, string(a))
		}
	}
	return names
}

// For returns the shapes that the input has for some actions, or for any. A name that is no
// action says nothing.
func For(names ...string) []*Shape {
	var shapes []*Shape
	for _, f := range all {
		if len(names) == 0 || slices.ContainsFunc(names, f.holds) {
			shapes = append(shapes, f.shape)
		}
	}
	return shapes
}

// holds reports whether the input for an action has the form.
func (f *form) holds(action string) bool {
	if slices.Contains(Actions(), action) {
		return slices.Contains(f.actions, gate.Action(action))
	}
	return f == methodCalls || !actions.IsMethod(gate.Action(action))
}

// schema is the JSON Schema of all inputs.
var schema = merged(For()).closed()

// Schema returns the JSON Schema of the input. It describes inputs of all actions at once.
func Schema() map[string]any { return schema }
