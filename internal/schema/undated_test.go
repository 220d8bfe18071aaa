package schema_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
)

func TestUndated(t *testing.T) {
	const dialect = `"$schema":"http://json-schema.org/draft-07/schema#"`
	for rest, drops := range map[string]bool{
		`"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false`:                   true,
		`"type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"string"}}`: true,
		`"properties":{"a":{"items":[{"type":"string"}]}}`:                                                    false,
		`"anyOf":[{"additionalItems":false}]`:                                                                 false,
		`"dependencies":{"a":["b"]}`:                                                                          false,
		`"properties":{"a":{"$ref":"#/definitions/a","minLength":1}},"definitions":{"a":{}}`:                  false,
		`"$id":"x"`: false,
		`"properties":{"a":{"unevaluatedProperties":false}}`: false,
	} {
		raw := gate.MustDoc("{" + dialect + "," + rest + "}")
		want := raw.String()
		if drops {
			want = "{" + rest + "}"
		}
		if got := schema.Undated(raw); got.String() != want {
			t.Errorf("%s becomes %s", raw, got)
		}
	}
	for _, same := range []string{`{"type":"object"}`, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `true`} {
		if got := schema.Undated(gate.MustDoc(same)); got.String() != same {
			t.Errorf("%s becomes %s", same, got)
		}
	}
}
