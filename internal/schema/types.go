package schema

import (
	"math/big"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// hasType reports whether a value has a type of JSON Schema (2020-12 core, section
// 4.2.1): a number without a fraction is an integer.
func hasType(d gate.Doc, name string) bool {
	switch d.Kind() {
	case doc.Null:
		return name == "null"
	case doc.Bool:
		return name == "boolean"
	case doc.String:
		return name == "string"
	case doc.Array:
		return name == "array"
	case doc.Object:
		return name == "object"
	case doc.Number:
		return name == "number" || name == "integer" && isInteger(d)
	}
	return false
}

func isInteger(d gate.Doc) bool {
	n, ok := new(big.Rat).SetString(string(d.Raw())) // the parser of documents bounds its power
	return ok && n.IsInt()
}
