package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// fixed returns a tool that always answers the same.
func fixed(name, result string) options.LocalTool {
	return tool(name, func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		return gate.Result{Doc: gate.MustDoc(result)}, nil
	})
}

func functions(t *testing.T, o gateway.FunctionOptions, tools ...options.LocalTool) ([]gateway.Function, error) {
	t.Helper()
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"s": tools}, Policy: granting("*"), Recorder: new(records)})
	return g.NewClient(gateway.ClientConfig{}).Functions(t.Context(), o)
}

func TestAnswers(t *testing.T) {
	const mixed = `{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="},
		{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"doc://b","text":"inner"}},
		{"type":"resource","resource":{"uri":"doc://c","mimeType":"application/pdf","blob":"JVBERi0xLjc="}}],"structuredContent":{"n":1}}`
	tests := map[string]struct {
		result  string
		options gateway.FunctionOptions
		want    string
	}{
		"texts, and the names of what is none": {mixed, gateway.FunctionOptions{}, "see\n[image, image/png, 8 bytes]\n[resource file:///a]\n[resource doc://b]\ninner\n[resource doc://c, application/pdf, 8 bytes]"},
		"structured content, if wanted":        {mixed, gateway.FunctionOptions{Structured: true}, `{"n":1}`},
		"and if there is nothing else":         {`{"content":[],"structuredContent":{"n":1}}`, gateway.FunctionOptions{}, `{"n":1}`},
		"nothing":                              {`{"content":[]}`, gateway.FunctionOptions{}, ""},
		"as much as there may be":              {`{"content":[{"type":"text","text":"12345"}]}`, gateway.FunctionOptions{MaxText: 5}, "12345"},
		"cut at the end of a line":             {`{"content":[{"type":"text","text":"first line\nsecond line"}]}`, gateway.FunctionOptions{MaxText: 15}, "first line\n[cut: the first 10 of 22 bytes]"},
		"cut between characters":               {`{"content":[{"type":"text","text":"grüße"}]}`, gateway.FunctionOptions{MaxText: 3}, "gr\n[cut: the first 2 of 7 bytes]"},
		"no bound":                             {`{"content":[{"type":"text","text":"` + strings.Repeat("a", 40<<10) + `"}]}`, gateway.FunctionOptions{MaxText: -1}, strings.Repeat("a", 40<<10)},
		"the usual bound":                      {`{"content":[{"type":"text","text":"` + strings.Repeat("a", 40<<10) + `"}]}`, gateway.FunctionOptions{}, strings.Repeat("a", 32<<10) + "\n[cut: the first 32768 of 40960 bytes]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all, err := functions(t, tt.options, fixed("tool", tt.result))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := all[0].Func(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, answer.Text); diff != "" || !utf8.ValidString(answer.Text) {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFunctionsOfTools(t *testing.T) {
	odd := options.LocalTool{
		Definition: gate.MustDoc(`{"name":"odd","description":"Does.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer","default":1}},"additionalProperties":false}}`),
		Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
			return gate.Result{Doc: gate.MustDoc(`{"content":[],"isError":true}`)}, nil
		},
	}
	for view, want := range map[gateway.SchemaView]string{
		gateway.Declared:   `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer","default":1}},"additionalProperties":false}`,
		gateway.Normalized: `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`,
		gateway.Passing:    `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":true}`,
	} {
		all, err := functions(t, gateway.FunctionOptions{Schema: view, Prefix: "p_"}, odd)
		if err != nil {
			t.Fatal(err)
		}
		f := all[0]
		if diff := cmp.Diff([]string{"p_s__odd", "Does.", want}, []string{f.Name, f.Description, string(f.Schema)}); diff != "" {
			t.Errorf("view %d (-want +got):\n%s", view, diff)
		}
		answer, err := f.Func(t.Context(), json.RawMessage(`{"a":1}`))
		if err != nil || !answer.IsError || answer.Result.Doc.IsZero() {
			t.Errorf("a tool's own failure: %+v, %v", answer, err)
		}
		for args, want := range map[string]gateway.ErrorCode{`{"a":"x"}`: gateway.InvalidParameters, `{"b":1}`: gateway.InvalidParameters, `{`: gateway.InvalidParameters, `[]`: gateway.InvalidParameters} {
			if _, err := f.Func(t.Context(), json.RawMessage(args)); code(err) != want {
				t.Errorf("arguments %s: %v", args, err)
			}
		}
	}
}

func TestFunctionNames(t *testing.T) {
	long := strings.Repeat("a", 58)
	all, err := functions(t, gateway.FunctionOptions{Prefix: "prefix_"}, tool(long+"1", nil), tool(long+"2", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if len(f.Name) != 64 || !strings.HasPrefix(f.Name, "prefix_s__aaa") {
			t.Errorf("name %q", f.Name)
		}
	}
	if all[0].Name == all[1].Name {
		t.Errorf("two tools have one name, %s", all[0].Name)
	}
	for name, o := range map[string]gateway.FunctionOptions{"a prefix with a dot": {Prefix: "a."}, "an unknown view": {Schema: 9}} {
		if _, err := functions(t, o, tool("x", nil)); code(err) != gateway.SchemaIncompatible {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A provider is shown a schema that it takes, and arguments are held against the declared one.
func TestFunctionsForProviders(t *testing.T) {
	either := options.LocalTool{
		Definition: gate.MustDoc(`{"name":"find","description":"Finds.","inputSchema":{"type":"object","properties":{"id":{"type":["integer","null"]},"name":{"const":"x"}},"oneOf":[{"required":["id"]},{"required":["name"]}]}}`),
		Call:       tool("find", nil).Call,
	}
	g := start(t, gateway.Config{Functions: map[string][]options.LocalTool{"f": {either}}, Policy: granting("f__*"), Recorder: new(records)})
	c := g.NewClient(gateway.ClientConfig{})
	for provider, want := range map[gateway.Provider]string{
		gateway.OpenAI:    `{"properties":{"id":{"type":["integer","null"]},"name":{"enum":["x"]}},"type":"object"}`,
		gateway.Anthropic: `{"properties":{"id":{"type":["integer","null"]},"name":{"const":"x"}},"type":"object"}`,
		gateway.Gemini:    `{"properties":{"id":{"nullable":true,"type":"integer"},"name":{"enum":["x"],"type":"string"}},"type":"object"}`,
	} {
		all, err := c.Functions(t.Context(), gateway.FunctionOptions{For: provider, Schema: gateway.Passing})
		if err != nil || len(all) != 1 || string(all[0].Schema) != want || all[0].Description != "Finds. Give exactly one of: id; name." {
			t.Fatalf("%s: %+v, %v", provider, all, err)
		}
		for args, want := range map[string]string{`{"id":1}`: "ok", `{"id":1,"name":"x"}`: "refused_validate_input"} {
			if _, err := all[0].Func(t.Context(), json.RawMessage(args)); gate.Code(err) != want {
				t.Errorf("%s, %s: %v", provider, args, err)
			}
		}
	}
	if _, err := c.Functions(t.Context(), gateway.FunctionOptions{For: "somebody"}); code(err) != gateway.SchemaIncompatible {
		t.Errorf("a provider that nobody knows: %v", err)
	}
}

// TestNormalizeSchema: a schema is normalized without any gateway, a tuple included.
func TestNormalizeSchema(t *testing.T) {
	raw := json.RawMessage(`{"type":"object","properties":{"tags":{"type":"array","items":[{"type":"string"},{"type":"number"}]}},"$schema":"x"}`)
	got, err := gateway.NormalizeSchema(raw, gateway.Normalized)
	if err != nil || strings.Contains(string(got), "$schema") || !strings.Contains(string(got), `"items":{`) {
		t.Errorf("normalized: %s, %v", got, err)
	}
	if got, err := gateway.NormalizeSchema(raw, gateway.Declared); err != nil || string(got) != string(raw) {
		t.Errorf("declared: %s, %v", got, err)
	}
	if got, _, err := gateway.SchemaFor(gateway.Gemini, raw); err != nil || strings.Contains(string(got), "$schema") {
		t.Errorf("for Gemini: %s, %v", got, err)
	}
	for _, bad := range []string{"", "[]", "{", "5"} {
		if got, err := gateway.NormalizeSchema(json.RawMessage(bad), gateway.Normalized); err == nil {
			t.Errorf("%q becomes %s", bad, got)
		}
	}
	if _, err := gateway.NormalizeSchema(raw, 9); err == nil {
		t.Error("a view that does not exist")
	}
	if _, _, err := gateway.SchemaFor("acme", raw); err == nil {
		t.Error("a provider that does not exist")
	}
}
