package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy"
)

var toolLabels = []policy.Label{
	{Pattern: "*", ToolLabels: provenance.ToolLabels{Effects: []provenance.ToolEffect{"external"}}},
	{Pattern: "files__*", ToolLabels: provenance.ToolLabels{Result: "untrusted", Private: true, Effects: []provenance.ToolEffect{"read"}}},
	{Pattern: "files__write_*", ToolLabels: provenance.ToolLabels{Result: "echo", Effects: []provenance.ToolEffect{"local", "destructive"}, Control: []string{"/path"}, Content: []string{}}},
	{Pattern: "files__write_log", ToolLabels: provenance.ToolLabels{Result: "trusted", Effects: []provenance.ToolEffect{"local"}, Control: []string{}}},
}

func TestLabelsOfATool(t *testing.T) {
	tests := map[string]struct{ tool, want string }{
		"the shortest pattern":          {"mail__send", `{"result":"untrusted","private":false,"effect":["external"]}`},
		"a longer pattern holds":        {"files__read", `{"result":"untrusted","private":true,"effect":["read"]}`},
		"the longest pattern holds":     {"files__write_text", `{"result":"echo","private":false,"effect":["local","destructive"],"control":["/path"],"content":[]}`},
		"a name holds before a pattern": {"files__write_log", `{"result":"trusted","private":false,"effect":["local"],"control":[]}`},
	}
	e := load(t, user(`deny contains json.marshal(input.tool.labels) if true`), policy.Options{Labels: toolLabels})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := e.Authorize(t.Context(), query(tt.tool, `{}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(gate.MustDoc(tt.want).Value(), gate.MustDoc(d.Reasons[0]).Value()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if _, ok := e.Labels(newTool(tt.tool)); !ok {
				t.Error("the gate is told of no labels")
			}
		})
	}
	if _, ok := load(t, nil, policy.Options{Labels: toolLabels[1:]}).Labels(newTool("mail__send")); ok {
		t.Error("a tool that no pattern matches has labels")
	}
	if a, b := e.Revision(), load(t, user(`deny contains json.marshal(input.tool.labels) if true`), policy.Options{}).Revision(); a == b {
		t.Error("other labels have the same revision")
	}
}

func TestLoadRefusesLabels(t *testing.T) {
	reads := []provenance.ToolEffect{"read"}
	tests := map[string]struct {
		labels []policy.Label
		want   string
	}{
		"a pattern that matches no tool": {[]policy.Label{{Pattern: "Files", ToolLabels: provenance.ToolLabels{Effects: reads}}}, "labels.Files"},
		"a pattern with * inside":        {[]policy.Label{{Pattern: "a*b", ToolLabels: provenance.ToolLabels{Effects: reads}}}, "only at the end"},
		"a pattern twice": {[]policy.Label{{Pattern: "a__b", ToolLabels: provenance.ToolLabels{Effects: reads}}, {Pattern: "a__b", ToolLabels: provenance.ToolLabels{Effects: reads}}},
			"has labels already"},
		"a kind of result that no one knows": {[]policy.Label{{Pattern: "a__b", ToolLabels: provenance.ToolLabels{Result: "clean", Effects: reads}}}, "labels.a__b.result"},
		"no effect":                          {[]policy.Label{{Pattern: "a__b"}}, "labels.a__b.effect: missing"},
		"an effect that no one knows":        {[]policy.Label{{Pattern: "a__b", ToolLabels: provenance.ToolLabels{Effects: []provenance.ToolEffect{"write"}}}}, "labels.a__b.effect"},
		"a pointer that is none":             {[]policy.Label{{Pattern: "a__b", ToolLabels: provenance.ToolLabels{Effects: reads, Control: []string{"to"}}}}, "labels.a__b.control"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := policy.Load(t.Context(), nil, policy.Options{Labels: tt.labels}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Where values came from is what the session knows; the tool's schema says which
// names are the caller's.
func TestProvenanceInTheInput(t *testing.T) {
	e := load(t, user(`deny contains json.marshal([input.provenance, input.carried]) if true`), policy.Options{})
	tracks := func(e *policy.Engine) bool {
		values, _ := e.Tracks()
		return values
	}
	if !tracks(e) || tracks(load(t, nil, policy.Options{})) || !tracks(load(t, nil, policy.Options{Packs: []string{"flow"}})) {
		t.Error("values are tracked for those who ask, and for nobody else")
	}
	var known provenance.Provenance
	known, _ = known.Join(known.Meet(gate.MustDoc(`["bob@corp.example"]`), provenance.FromPrompt, 100), 100)
	known, _ = known.Join(known.Meet(gate.MustDoc(`["bob@corp.example","eve@evil.example"]`), provenance.FromUntrusted, 100), 100)
	q := query("mail__send", `{"to":["BOB@corp.example","eve@evil.example","ann"],"body":"from eve@evil.example","n":5,"b":true}`)
	q.Tool.Definition = gate.MustDoc(`{"inputSchema":{"properties":{"to":{},"body":{},"n":{},"b":{}}}}`)
	q.Session.Values = known
	d, err := e.Authorize(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"/to/0":["prompt","untrusted"],"/to/1":["untrusted"],"/to/2":[],"/body":[],"/n":[],"/b":[]},
	 {"/to/0":{"bob@corp.example":["prompt","untrusted"]},"/to/1":{"eve@evil.example":["untrusted"]},"/body":{"eve@evil.example":["untrusted"]}}]`
	if diff := cmp.Diff(gate.MustDoc(want).Value(), gate.MustDoc(d.Reasons[0]).Value()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The pack hides no tool: whether a session has read anything is not known when
// tools are listed.
func TestFlowHidesNothing(t *testing.T) {
	e := load(t, nil, policy.Options{
		Packs: []string{"grants", "flow"}, Labels: toolLabels, Grants: []policy.Grant{{To: []string{"*"}, Tools: []string{"*"}}},
	})
	visible, err := e.Visible(t.Context(), alice, []*gate.Tool{newTool("mail__send"), newTool("files__write_text"), newTool("files__read")})
	if err != nil || !visible[0] || !visible[1] || !visible[2] {
		t.Errorf("visible = %v, %v", visible, err)
	}
}
