package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Tool is one function, with the definition that clients are shown. The
// JSON names are those of MCP's tools/list.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  json.RawMessage `json:"annotations"`

	run func(args []byte) ([]byte, error)
}

// pure says that a tool changes nothing, answers the same twice and reaches
// nothing outside itself. It holds for all of them.
const pure = `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`

// All returns the tools in the order in which they are listed.
func All() []Tool {
	return []Tool{csvQuery, hash, htmlToText, jsonQuery, textDiff}
}

// Call runs the named tool on args, a JSON object, and returns its structured
// content. The error's text is meant for the caller of the tool.
func Call(name string, args []byte) ([]byte, error) {
	tools := All()
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no tool %q", name)
	}
	return tools[i].run(args)
}

// Manifest returns the content of the module's custom section `wasmgate`.
func Manifest() ([]byte, error) {
	return json.Marshal(struct {
		Tools []Tool `json:"tools"`
	}{All()})
}

// typed makes the run function of a tool from a function on Go values.
func typed[In, Out any](f func(In) (Out, error)) func([]byte) ([]byte, error) {
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

// bounded returns value, or fallback when value is nil, and an error when it
// lies outside of low to high.
func bounded(name string, value *int, fallback, low, high int) (int, error) {
	if value == nil {
		return fallback, nil
	}
	if *value < low || *value > high {
		return 0, fmt.Errorf("argument %s: %d is not between %d and %d", name, *value, low, high)
	}
	return *value, nil
}
