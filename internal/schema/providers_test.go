package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// TestForProvider has a row for each rule, with where a provider says it, or answers with it.
func TestForProvider(t *testing.T) {
	object := func(a string) string { return `{"properties":{"a":` + a + `},"type":"object"}` }
	all := []schema.Provider{schema.OpenAI, schema.Anthropic, schema.Gemini}
	for _, tt := range []struct {
		of       []schema.Provider
		in, want string
		said     string
	}{
		// anthropics/claude-code#5319: "input_schema does not support oneOf, allOf, or anyOf at the top level";
		// langchain-ai/langchainjs#9804: the same of OpenAI; Gemini wants an object.
		{all, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b","c"]}]}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"type":"object"}`, "Give exactly one of: a; b and c."},
		{all, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`, "Give at least one of: a; b."},
		{all, `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}]}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`, ""},
		// makenotion/notion-mcp-server#102: "'allOf' is not permitted".
		{all, object(`{"allOf":[{"type":"string"},{"maxLength":3}]}`), object(`{"maxLength":3,"type":"string"}`), ""},
		// No provider resolves references into other documents, and recursive ones are too deep for all.
		{all, `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, object(`{"type":"integer"}`), ""},
		// danny-avila/LibreChat#11784: Gemini answers 400 to const; community.openai.com/t/932422: "'oneOf' is not permitted".
		{[]schema.Provider{schema.OpenAI}, object(`{"oneOf":[{"const":"x"},{"type":"integer"}]}`), object(`{"anyOf":[{"enum":["x"]},{"type":"integer"}]}`), ""},
		{[]schema.Provider{schema.Gemini}, object(`{"oneOf":[{"const":"x"},{"type":"integer"}]}`), object(`{"anyOf":[{"enum":["x"],"type":"string"},{"type":"integer"}]}`), ""},
		{[]schema.Provider{schema.Anthropic}, object(`{"oneOf":[{"const":"x"},{"type":"integer"}]}`), object(`{"oneOf":[{"const":"x"},{"type":"integer"}]}`), ""},
		// ai.google.dev/api/caching#Schema: one type, and nullable.
		{[]schema.Provider{schema.Gemini}, object(`{"type":["string","null"],"maxLength":3}`), object(`{"maxLength":3,"nullable":true,"type":"string"}`), ""},
		{[]schema.Provider{schema.OpenAI, schema.Anthropic}, object(`{"type":["string","null"],"maxLength":3}`), object(`{"maxLength":3,"type":["string","null"]}`), ""},
		{[]schema.Provider{schema.Gemini}, object(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), object(`{"nullable":true,"type":"string"}`), ""},
		{[]schema.Provider{schema.Gemini}, object(`{"type":["string","integer"],"minimum":1,"description":"d"}`),
			object(`{"anyOf":[{"description":"d","type":"string"},{"description":"d","minimum":1,"type":"integer"}]}`), ""},
		// Vertex: "When using any_of, it must be the only field set."
		{[]schema.Provider{schema.Gemini}, object(`{"description":"d","type":"string","anyOf":[{"maxLength":1},{"minLength":5}]}`),
			object(`{"anyOf":[{"description":"d","maxLength":1,"type":"string"},{"description":"d","minLength":5,"type":"string"}]}`), ""},
		{[]schema.Provider{schema.Gemini}, object(`{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"oneOf":[{"required":["x"]},{"required":["y"],"properties":{"z":{"const":"1"}}}]}`),
			object(`{"properties":{"x":{"type":"string"},"y":{"type":"string"},"z":{"enum":["1"],"type":"string"}},"type":"object"}`), ""},
		// microsoft/azure-devops-mcp#145: "Invalid value at '...enum[0]' (TYPE_STRING), 2"; decolua/9router#380: "enum only allowed for STRING type".
		{[]schema.Provider{schema.Gemini}, object(`{"type":"integer","enum":[1,2]}`), object(`{"description":"One of: 1, 2.","type":"integer"}`), ""},
		{[]schema.Provider{schema.Gemini}, object(`{"enum":["a",null]}`), object(`{"enum":["a"],"nullable":true,"type":"string"}`), ""},
		{[]schema.Provider{schema.OpenAI, schema.Anthropic}, object(`{"type":"integer","enum":[1,2]}`), object(`{"enum":[1,2],"type":"integer"}`), ""},
		// zed-industries/zed#44875: "Unknown name ...: Cannot find field."
		{[]schema.Provider{schema.Gemini}, `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"object","additionalProperties":{"type":"string"},"properties":{"b":{"type":"string","format":"uri"}}}}}`,
			object(`{"properties":{"b":{"type":"string"}},"type":"object"}`), ""},
		// OpenAI: "array schema missing items".
		{[]schema.Provider{schema.OpenAI}, object(`{"type":"array"}`), object(`{"items":{},"type":"array"}`), ""},
		{[]schema.Provider{schema.Gemini}, object(`{"type":"array"}`), object(`{"items":{"type":"string"},"type":"array"}`), ""},
		// What may be anything is not only an object.
		{[]schema.Provider{schema.Anthropic}, object(`{"description":"d"}`), object(`{"description":"d","properties":{},"type":["string","number","boolean","object","array","null"]}`), ""},
		{[]schema.Provider{schema.OpenAI}, object(`true`), object(`{"items":{},"properties":{},"type":["string","number","boolean","object","array","null"]}`), ""},
		// platform.openai.com/docs/guides/structured-outputs: not, if, then, else and their like are not supported.
		{[]schema.Provider{schema.OpenAI}, object(`{"type":"object","properties":{"b":{"type":"string"}},"not":{"required":["b"]},"patternProperties":{"x":{"type":"string"}}}`),
			object(`{"properties":{"b":{"type":"string"}},"type":"object"}`), ""},
	} {
		for _, p := range tt.of {
			got, said, ok := schema.ForProvider(p, gate.MustDoc(tt.in))
			if !ok || string(got.Canonical()) != string(gate.MustDoc(tt.want).Canonical()) || said != tt.said {
				t.Errorf("%s: %s\nbecomes %s, %q\nwant    %s, %q", p, tt.in, got, said, tt.want, tt.said)
			}
		}
	}
	if _, _, ok := schema.ForProvider("somebody", gate.MustDoc("{}")); ok {
		t.Error("a provider that nobody knows")
	}
}

// Whatever a schema is, what a provider is shown is one that it takes, and an object.
func TestForProviderHolds(t *testing.T) {
	parts := []string{
		`{"type":"string","enum":["a","b"]}`, `{"const":{"x":[1]}}`, `{"type":["array","null"]}`, `{}`, `true`, `false`, `[]`, `7`, `{"type":"array","items":[{"type":"string"}]}`,
		`{"oneOf":[true,{"type":"null"}]}`, `{"anyOf":[]}`, `{"$ref":"#"}`, `{"enum":[1,"a",null,true,{"properties":{}}]}`, `{"type":"nothing"}`, `{"dependencies":{"a":["b"],"b":{"required":["a"]}}}`,
	}
	for _, a := range parts {
		for _, b := range parts {
			in := fmt.Sprintf(`{"type":"object","properties":{"a":%s,"b":{"type":"object","properties":{"c":%s}}},"anyOf":[{"required":["a"]},%s],"allOf":[%s]}`, a, b, a, b)
			for _, p := range []schema.Provider{schema.OpenAI, schema.Anthropic, schema.Gemini} {
				got, _, _ := schema.ForProvider(p, gate.MustDoc(in))
				if got.Get("type").Text() != "object" || got.Get("properties").Kind() != doc.Object {
					t.Fatalf("%s: %s becomes %s", p, in, got)
				}
				var v map[string]any
				if err := json.Unmarshal(got.Raw(), &v); err != nil {
					t.Fatal(err)
				}
				for _, top := range []string{"allOf", "anyOf", "oneOf", "not", "enum"} {
					if v[top] != nil {
						t.Fatalf("%s: %s becomes %s", p, in, got)
					}
				}
				taken(t, p, v)
				if t.Failed() {
					t.Fatalf("%s: %s becomes %s", p, in, got)
				}
			}
		}
	}
}

// taken fails the test if a schema has within it what its provider refuses.
func taken(t *testing.T, p schema.Provider, s map[string]any) {
	t.Helper()
	for name, v := range s {
		switch {
		case name == "properties":
			for _, one := range v.(map[string]any) {
				within, ok := one.(map[string]any)
				if !ok {
					t.Errorf("a member is %v", one)
					continue
				}
				taken(t, p, within)
			}
			continue
		case name == "allOf", p == schema.OpenAI && (name == "oneOf" || name == "const"):
			t.Errorf("%s", name)
		case p == schema.Gemini:
			geminis := "type format description nullable enum items minItems maxItems properties required minProperties maxProperties minLength maxLength pattern minimum maximum anyOf"
			_, text := s["type"].(string)
			if !slices.Contains(strings.Fields(geminis), name) || name == "anyOf" && len(s) > 1 || !text && s["anyOf"] == nil || name == "enum" && s["type"] != "string" {
				t.Errorf("%s in %v", name, s)
			}
		}
		switch v := v.(type) {
		case map[string]any:
			if name == "items" || name == "additionalProperties" {
				taken(t, p, v)
			}
		case []any:
			if name == "anyOf" || name == "oneOf" {
				for _, one := range v {
					if within, ok := one.(map[string]any); ok {
						taken(t, p, within)
					}
				}
			}
		}
	}
}
