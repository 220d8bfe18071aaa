package schema

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
)

// nullable returns what a schema is judged by whose parts are nullable as in OpenAPI 3.0: JSON Schema
// does not know that keyword, but generators write it for values that their servers take as null.
// Only the part that is nullable changes, so that references still lead where they led.
func nullable(raw gate.Doc) gate.Doc {
	if !bytes.Contains(raw.Raw(), []byte(`"nullable"`)) {
		return raw
	}
	value, ok := raw.Value().(map[string]any)
	if !ok {
		return raw
	}
	allowNull(value, false)
	text, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	changed, err := gate.ParseDoc(text)
	if err != nil {
		return raw
	}
	return changed
}

// allowNull changes the schemas in v. The members of an object of named schemas, such as properties, are no keywords.
func allowNull(v any, named bool) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			allowNull(element, false)
		}
	case map[string]any:
		for name, member := range v {
			switch {
			case named:
				allowNull(member, false)
			case name != "const" && name != "enum" && name != "default" && name != "examples": // which are values
				allowNull(member, slices.Contains(namedSchemas, name))
			}
		}
		if !named && v["nullable"] == true {
			nullBeside(v)
		}
	}
}

// nullBeside lets a schema allow null, too.
func nullBeside(s map[string]any) {
	if of, ok := s["type"].(string); ok {
		s["type"] = []any{of, "null"}
	}
	null := map[string]any{"type": "null"}
	switch {
	case s["enum"] != nil:
		if values, ok := s["enum"].([]any); ok && !slices.Contains(values, nil) {
			s["enum"] = append(values, nil)
		}
	case s["anyOf"] != nil, s["oneOf"] != nil:
		for _, name := range []string{"anyOf", "oneOf"} {
			if of, ok := s[name].([]any); ok {
				s[name] = append(of, null)
			}
		}
	case s["allOf"] != nil, s["$ref"] != nil:
		rest := map[string]any{}
		for _, name := range []string{"allOf", "$ref"} {
			if v, ok := s[name]; ok {
				rest[name] = v
				delete(s, name)
			}
		}
		s["anyOf"] = []any{null, rest}
	}
}
