package policy_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/bundle"
)

// Rules read what a program gives them as Go values, and a program decides on one.
func TestDataAndValues(t *testing.T) {
	rules := fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\nallow contains \"listed\" if input.tool.name in data.app.tools[_]\ndeny contains \"too much\" if input.arguments.sum > data.limits.sum\n")}}
	given := map[string]any{"app": map[string]any{"tools": map[string][]string{"all": {"pay__send"}}}, "limits": struct {
		Sum int64 `json:"sum"`
	}{9007199254740993}}
	load := func(data map[string]any) (*policy.Engine, error) {
		return policy.Load(t.Context(), rules, policy.Options{Packs: []string{}, Data: data})
	}
	e, err := load(given)
	if err != nil {
		t.Fatal(err)
	}
	type input struct {
		Tool      map[string]string `json:"tool"`
		Arguments map[string]int64  `json:"arguments"`
	}
	for _, tt := range []struct {
		tool string
		sum  int64
		want gate.Effect
		why  string
	}{
		{"pay__send", 9007199254740993, gate.Allow, "listed"},
		{"pay__send", 9007199254740994, gate.Deny, "too much"},
		{"pay__other", 1, gate.Deny, "no policy allows"},
	} {
		d, err := e.EvalValue(t.Context(), input{map[string]string{"name": tt.tool}, map[string]int64{"sum": tt.sum}})
		if err != nil || d.Effect != tt.want || !strings.Contains(strings.Join(d.Reasons, " "), tt.why) {
			t.Errorf("%s %d: %s %q, %v", tt.tool, tt.sum, d.Effect, d.Reasons, err)
		}
	}
	for name, input := range map[string]any{"no JSON": make(chan int), "no object": []int{1}} {
		if d, err := e.EvalValue(context.Background(), input); err == nil || d.Effect != "" {
			t.Errorf("%s: %s, %v", name, d.Effect, err)
		}
	}
	given["app"] = "else"
	if d, err := e.EvalValue(t.Context(), map[string]any{"tool": map[string]any{"name": "pay__send"}}); err != nil || d.Effect != gate.Allow {
		t.Errorf("the program's map has changed: %+v, %v", d, err)
	}
	if other, err := load(given); err != nil || other.Revision() == e.Revision() {
		t.Errorf("other data is another policy: %v", err)
	}
	for name, data := range map[string]map[string]any{
		"member grants":   {"grants": 1},
		"member wasmgate": {"wasmgate": map[string]any{"allow": 1}},
		"not JSON":        {"f": func() {}},
	} {
		if _, err := load(data); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Data that a bundle has claimed belongs to that bundle only.
func TestDataBesideBundles(t *testing.T) {
	b, err := bundle.ReadFolder(fstest.MapFS{
		".manifest": {Data: []byte(`{"roots": ["acme/tools"]}`)}, "acme/tools/data.json": {Data: []byte(`{"x": ["a__b"]}`)},
	}, bundle.Options{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"acme": false, "other": true} {
		_, err := policy.Load(t.Context(), nil, policy.Options{Bundles: []*bundle.Bundle{b}, Data: map[string]any{name: map[string]any{"y": 1}}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Idle warns of a rule of another package if no rule of package wasmgate refers to it.
func TestIdle(t *testing.T) {
	e, err := policy.Load(t.Context(), fstest.MapFS{
		"app.rego":  {Data: []byte("package app\nallow if true\n")},
		"used.rego": {Data: []byte("package used\nfine if true\n")},
		"a.rego":    {Data: []byte("package wasmgate\nallow contains \"fine\" if data.used.fine\n")},
	}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Idle(); len(got) != 1 || got[0].File != "app.rego" || !got[0].Warning || !strings.Contains(got[0].Message, "has no effect") {
		t.Errorf("idle: %+v", got)
	}
}
