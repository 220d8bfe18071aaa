package schema_test

import (
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
)

func ExampleCompile() {
	s, err := schema.Compile(gate.MustDoc(`{
		"type": "object",
		"properties": {"path": {"type": "string"}, "depth": {"type": "integer", "maximum": 5}},
		"required": ["path"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Validate(gate.MustDoc(`{"path": "/srv", "depth": 2}`)))
	fmt.Println(s.Validate(gate.MustDoc(`{"depth": 9}`)))

	_, err = schema.Compile(gate.MustDoc(`{"properties": {"a": {"$ref": "https://example.com/a.json"}}}`))
	fmt.Println(err)
	// Output:
	// <nil>
	// (root): missing "path"; /depth: must be at most 5
	// /properties/a/$ref: the schema refers to another document, "https://example.com/a.json"
}

func ExampleNormalize() {
	fmt.Println(schema.Normalize(gate.MustDoc(`{
		"$schema": "http://json-schema.org/draft-07/schema#",
		"type": "object",
		"properties": {"at": {"$ref": "#/definitions/point"}},
		"required": ["at", "missing"],
		"definitions": {"point": {"type": "array", "items": [{"type": "number", "default": 0}, {"type": "number"}]}}
	}`)))
	// Output:
	// {"type":"object","properties":{"at":{"type":"array","items":{"type":"number"}}},"required":["at"]}
}
