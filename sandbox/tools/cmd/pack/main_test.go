package main

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestManifests checks what clients will be shown of each module.
func TestManifests(t *testing.T) {
	tests := map[string]struct {
		tools []string
		wants string
	}{
		"tools": {[]string{"csv_query", "hash", "html_to_text", "json_query", "text_diff"}, ""},
		"files": {[]string{"repo_scan"}, `{"dirs":[]}`},
	}
	if len(modules) != len(tests) {
		t.Errorf("%d modules, want %d", len(modules), len(tests))
	}
	for module, tt := range tests {
		t.Run(module, func(t *testing.T) {
			b, err := json.Marshal(modules[module])
			if err != nil {
				t.Fatal(err)
			}
			var manifest struct {
				Tools []definition
				Wants json.RawMessage
			}
			if err := json.Unmarshal(b, &manifest); err != nil {
				t.Fatal(err)
			}
			if string(manifest.Wants) != tt.wants {
				t.Errorf("wants = %s, want %s", manifest.Wants, tt.wants)
			}
			var names []string
			for _, d := range manifest.Tools {
				names = append(names, d.Name)
				d.check(t)
			}
			if !slices.Equal(names, tt.tools) {
				t.Errorf("tools = %v, want %v", names, tt.tools)
			}
		})
	}
}

type definition struct {
	Name, Title, Description  string
	InputSchema, OutputSchema schema
	Annotations               map[string]bool
}

type schema struct {
	Type                 string
	Properties           map[string]struct{ Description string }
	AdditionalProperties *bool
}

func (d definition) check(t *testing.T) {
	if d.Title == "" || d.Description == "" {
		t.Errorf("%s: no title or no description", d.Name)
	}
	if !d.Annotations["readOnlyHint"] || !d.Annotations["idempotentHint"] || d.Annotations["destructiveHint"] || d.Annotations["openWorldHint"] {
		t.Errorf("%s: annotations = %v", d.Name, d.Annotations)
	}
	for name, s := range map[string]schema{"input": d.InputSchema, "output": d.OutputSchema} {
		if s.Type != "object" || s.AdditionalProperties == nil || *s.AdditionalProperties {
			t.Errorf("%s: the %s schema is not a closed object", d.Name, name)
		}
		for p, v := range s.Properties {
			if v.Description == "" {
				t.Errorf("%s: property %s of the %s schema is not described", d.Name, p, name)
			}
		}
	}
}
