package schema_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// TestForModels: what providers refuse is not there, and all that the schema allows still is.
func TestForModels(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`:                                                      `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`: `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`,
		`{"anyOf":[{"type":"object","properties":{"kind":{"const":"x"},"n":{"type":"integer"}},"required":["kind","n"]},` +
			`{"type":"object","properties":{"kind":{"const":"y"}},"required":["kind"]}]}`: `{"properties":{"kind":{"anyOf":[{"const":"x"},{"const":"y"}]},"n":{"type":"integer"}},"required":["kind"],"type":"object"}`,
		`{"type":"object","properties":{"d":{"allOf":[{"type":"string"},{"maxLength":3}]}},"allOf":[{"properties":{"e":{"type":"number"}},"required":["e"]}],"not":{"required":["d"]}}`: `{"properties":{"d":{"maxLength":3,"type":"string"},"e":{"type":"number"}},"required":["e"],"type":"object"}`,
		`{"type":"object","properties":{"allOf":{"type":"string"},"n":{"maximum":12345678901234567890}},"enum":[{}]}`:                                                                   `{"properties":{"allOf":{"type":"string"},"n":{"maximum":12345678901234567890}},"type":"object"}`,
		`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"oneOf":[{"properties":{"n":{"type":"integer"}}},true]}`:                                               `{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`,
	} {
		if got := schema.ForModels(gate.MustDoc(in)).String(); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", in, got, want)
		}
	}
}
