package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
)

func TestPassThrough(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"an object": {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`},
		"a closed one": {`{"type":"object","properties":{},"additionalProperties":false}`,
			`{"type":"object","properties":{},"additionalProperties":true}`},
		"objects in objects, arrays and alternatives": {
			`{"type":"object","properties":{"a":{"type":"object","properties":{}},"b":{"type":"array","items":{"type":"object","properties":{}}},"c":{"anyOf":[{"type":"object","properties":{}},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{},"additionalProperties":true},"b":{"type":"array","items":{"type":"object","properties":{},"additionalProperties":true}},"c":{"anyOf":[{"type":"object","properties":{},"additionalProperties":true},{"type":"null"}]}},"additionalProperties":true}`,
		},
		"a property of the name of a keyword": {`{"type":"object","properties":{"properties":{"type":"string"},"items":{"type":"object","properties":{}}}}`,
			`{"type":"object","properties":{"properties":{"type":"string"},"items":{"type":"object","properties":{},"additionalProperties":true}},"additionalProperties":true}`},
		"what must not be stays closed": {`{"type":"object","properties":{},"not":{"type":"object","properties":{},"additionalProperties":false}}`,
			`{"type":"object","properties":{},"not":{"type":"object","properties":{},"additionalProperties":false},"additionalProperties":true}`},
		"unevaluated members": {`{"type":"object","properties":{},"unevaluatedProperties":false}`, `{"type":"object","properties":{},"unevaluatedProperties":true,"additionalProperties":true}`},
		"no schema":           {`[]`, `{"type":"object","properties":{},"additionalProperties":true}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := schema.PassThrough(gate.MustDoc(tt.in))
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := schema.PassThrough(got); again.String() != got.String() {
				t.Errorf("again: %s", again)
			}
		})
	}
}
