// Package tool provides what the embedded tools have in common: the definition that clients are
// shown, and the way from JSON to a Go function and back.
//
// It imports little and initialises nothing, because its package initialisation runs in every
// guest.
package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ReadOnly are the annotations of a tool that changes nothing, answers the
// same as long as what it reads is the same, and reaches nothing that is not
// given to it.
const ReadOnly = `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`

// A Tool is one function, with the definition that clients are shown. The
// JSON names are those of MCP's tools/list.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  json.RawMessage `json:"annotations"`

	// Run takes a JSON object and returns the structured content. Its error's
	// text is meant for the caller of the tool.
	Run func(args []byte) ([]byte, error) `json:"-"`
}

// A Module is what one WASM module offers. Its JSON is the content of the
// module's custom section `wasmgate`.
type Module struct {
	Tools []Tool          `json:"tools"`           // in the order in which they are listed
	Wants json.RawMessage `json:"wants,omitempty"` // what the operator is asked to grant; absent: nothing
}

// Call runs the named tool on args, a JSON object, and returns its structured
// content. The error's text is meant for the caller of the tool.
func (m Module) Call(name string, args []byte) ([]byte, error) {
	i := slices.IndexFunc(m.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no tool %q", name)
	}
	return m.Tools[i].Run(args)
}

// Typed makes the Run function of a tool from a function on Go values.
func Typed[In, Out any](f func(In) (Out, error)) func([]byte) ([]byte, error) {
	return func(args []byte) ([]byte, error) {
		var in In
		if err := decode(args, &in); err != nil {
			return nil, err
		}
		out, err := f(in)
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
}

// decode is strict: the gateway has checked the schema, but the module may
// also be run without it.
func decode(args []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return fmt.Errorf("argument %s: a JSON %s stands where a value of type %s belongs", wrong.Field, wrong.Value, wrong.Type)
		}
		return fmt.Errorf("arguments: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("arguments: more than one JSON value")
	}
	return nil
}

// encode leaves <, > and & alone: the output is read by models, not browsers.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Bounded returns the value of the named argument, or fallback when value is
// nil, and an error when it lies outside of low to high.
func Bounded(name string, value *int, fallback, low, high int) (int, error) {
	if value == nil {
		return fallback, nil
	}
	if *value < low || *value > high {
		return 0, fmt.Errorf("argument %s: %d is not between %d and %d", name, *value, low, high)
	}
	return *value, nil
}
