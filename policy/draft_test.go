package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

func TestDraftLabel(t *testing.T) {
	effects := func(e ...gate.ToolEffect) []gate.ToolEffect { return e }
	tests := map[string]struct {
		definition string
		want       gate.ToolLabels
	}{
		"files__read_text_file": {`{"inputSchema":{"properties":{"path":{}}}}`, gate.ToolLabels{Private: true, Effects: effects("read")}},
		"files__readTextFile":   {`{}`, gate.ToolLabels{Private: true, Effects: effects("read")}},
		"files__write_file":     {`{"inputSchema":{"properties":{"path":{},"content":{}}}}`, gate.ToolLabels{Private: true, Effects: effects("internal"), To: []string{"/path"}, Content: []string{"/content"}}},
		"mail__send": {`{"inputSchema":{"properties":{"to":{},"cc":{},"body":{},"urgent":{}}}}`,
			gate.ToolLabels{Effects: effects("external"), To: []string{"/to", "/cc"}, Content: []string{"/body"}}},
		"web__fetch":            {`{"inputSchema":{"properties":{"url":{}}}}`, gate.ToolLabels{Effects: effects("egress"), To: []string{"/url"}}},
		"db__drop_table":        {`{"inputSchema":{"properties":{"a/b id":{}}}}`, gate.ToolLabels{Effects: effects("destructive"), To: []string{"/a~1b id"}}},
		"users__reset_password": {`{"inputSchema":{"properties":{"user":{},"new":{}}}}`, gate.ToolLabels{Effects: effects("destructive", "credential")}},
		"x__frobnicate":         {`{"annotations":{"readOnlyHint":true},"inputSchema":{"properties":{"a":{}}}}`, gate.ToolLabels{Effects: effects("external")}},
		"x__get":                {`{"annotations":{"readOnlyHint":false}}`, gate.ToolLabels{Effects: effects("external")}},
		"x__find":               {`{"annotations":{"destructiveHint":true}}`, gate.ToolLabels{Effects: effects("destructive")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.Result = gate.ResultUntrusted
			got := policy.DraftLabel(name, gate.MustDoc(tt.definition))
			if diff := cmp.Diff(policy.Label{Pattern: name, ToolLabels: tt.want}, got); diff != "" {
				t.Errorf("label (-want +got):\n%s", diff)
			}
			if problems := policy.CheckLabels([]policy.Label{got}); problems != nil {
				t.Error(problems[0])
			}
		})
	}
}
