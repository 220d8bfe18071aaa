package altered_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/background/altered"
)

// labels are what an operator says of tools, by their names.
type labels map[string]provenance.ToolLabels

func (l labels) Labels(t *gate.Tool) (provenance.ToolLabels, bool) {
	said, ok := l[t.Name.String()]
	return said, ok
}

func TestOften(t *testing.T) {
	changed := gate.Finding{Rule: "html/handler", Count: 1, Removed: true}
	closed := `{"openWorldHint":false}`
	for name, tt := range map[string]struct {
		results, changed int
		finding          gate.Finding
		annotations      string
		elsewhere        bool
		label            *provenance.ToolLabels
		want             string
	}{
		"often":                             {200, 13, changed, closed, false, nil, "git__diff: 13 of 200 results were changed, by html/handler; if they are source that agents work on, write `sanitize: {tools: {\"git__diff\": code}}`"},
		"it may reach outside":              {5, 5, changed, `{}`, false, nil, "see docs/how-to/sanitizing.md"},
		"it says that it does":              {5, 5, changed, `{"openWorldHint":true}`, false, nil, "see docs/how-to/sanitizing.md"},
		"a label says that it does not":     {5, 5, changed, `{}`, false, &provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectRead}}, "sanitize: {tools"},
		"a label says that it does":         {5, 5, changed, closed, false, &provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectEgress}}, "see docs/how-to/sanitizing.md"},
		"a label says what the results are": {5, 5, changed, closed, false, &provenance.ToolLabels{Kind: provenance.KindProse}, ""},
		"rarely":                            {200, 3, changed, closed, false, nil, ""},
		"twice":                             {2, 2, changed, closed, false, nil, ""},
		"not changed":                       {5, 5, gate.Finding{Rule: "html/handler", Count: 1}, closed, false, nil, ""},
		"by what is done to source, too":    {5, 5, gate.Finding{Rule: "token/chat", Count: 1, Removed: true}, closed, false, nil, ""},
		"a server elsewhere":                {5, 5, changed, closed, true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tool := &gate.Tool{Name: gate.ToolName{Server: "git", Tool: "diff"}, Feature: gate.FeatureTool, OnMachine: !tt.elsewhere, Annotations: gate.MustDoc(tt.annotations)}
			said := labels{}
			if tt.label != nil {
				said["git__diff"] = *tt.label
			}
			var c altered.Counts
			for i := range tt.results {
				r := &gate.Record{Event: gate.Done, Tool: tool, Code: codes.OK}
				if i < tt.changed {
					r.Findings = []gate.Finding{tt.finding, tt.finding}
				}
				c.Observe(r)
			}
			c.Observe(&gate.Record{Event: gate.Done, Tool: tool, Code: "refused_authorize", Findings: []gate.Finding{changed}})
			often := c.Often([]*gate.Tool{tool}, said)
			if tt.want == "" {
				if len(often) > 0 {
					t.Errorf("it is named: %v", often)
				}
				return
			}
			if len(often) != 1 || !strings.Contains(often[0].String(), tt.want) {
				t.Errorf("got %v, want %q in it", often, tt.want)
			}
			if c.Reset(); len(c.Often([]*gate.Tool{tool}, said)) > 0 {
				t.Error("it is named though nothing was counted since")
			}
		})
	}
}

func TestOftenNamesTheMostChangedFirst(t *testing.T) {
	var c altered.Counts
	var tools []*gate.Tool
	for i := range 3 {
		tool := &gate.Tool{Name: gate.ToolName{Server: "s", Tool: fmt.Sprint(i)}, Feature: gate.FeatureTool, OnMachine: true}
		tools = append(tools, tool)
		for range 3 + i {
			c.Observe(&gate.Record{Event: gate.Done, Tool: tool, Code: codes.ToolError, Findings: []gate.Finding{
				{Rule: "link/image", Removed: true}, {Rule: "html/url", Removed: true}, {Rule: "html/url", Removed: true}, {Rule: "html/script", Removed: true}, {Rule: "link/target", Removed: true},
			}})
		}
	}
	rules := []string{"html/url", "html/script", "link/image"}
	want := []altered.Tool{{Tool: "s__2", Results: 5, Changed: 5, Rules: rules}, {Tool: "s__1", Results: 4, Changed: 4, Rules: rules}, {Tool: "s__0", Results: 3, Changed: 3, Rules: rules}}
	if diff := cmp.Diff(want, c.Often(tools, labels{})); diff != "" {
		t.Error(diff)
	}
}
