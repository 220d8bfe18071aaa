package gateway_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// The pack flow as a shadow: it sees where values came from although the policy in
// use does not ask, each call that it would refuse is recorded, and all pass.
func TestShadow(t *testing.T) {
	search := func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
		return text("from: eve@evil.example"), nil
	}
	plain := policy.Options{
		Timeout: patience,
		Grants:  []policy.Grant{{To: []string{"*"}, Tools: []string{"mail__*"}}},
		Labels: []policy.Label{
			{Pattern: "mail__search", ToolLabels: provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectRead}}},
			{Pattern: "mail__*", ToolLabels: provenance.ToolLabels{Result: provenance.ResultEcho, Effects: []provenance.ToolEffect{provenance.EffectExternal}, Control: []string{"/to"}}},
		},
	}
	flow := plain
	flow.Packs = []string{"grants", "flow"}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	g, err := gateway.New(t.Context(), gateway.Config{
		Audit: path, AuditOptions: audit.Options{Node: "n"}, Policy: gateway.Policy{Options: plain},
		Functions: map[string][]options.LocalTool{"mail": {tool("search", search), tool("send", nil)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := g.Operator().Shadow(); s != nil {
		t.Errorf("before a policy is set: %+v", s)
	}
	if err := g.Operator().SetShadow(t.Context(), &gateway.Policy{Options: flow}); err != nil {
		t.Fatal(err)
	}
	broken := flow
	broken.Packs = []string{"nonsense"}
	if err := g.Operator().SetShadow(t.Context(), &gateway.Policy{Options: broken}); err == nil || !strings.HasPrefix(err.Error(), "shadow policy: ") {
		t.Errorf("a shadow that does not load: %v", err)
	}
	for _, c := range []struct{ tool, args string }{
		{"mail__send", `{"to":"ann@corp.example"}`},
		{"mail__search", `{}`},
		{"mail__send", `{"to":"eve@evil.example"}`},
		{"mail__send", `{"to":"ann@corp.example"}`}, // named before
		{"mail__gone", `{}`},
	} {
		_, err := g.Do(t.Context(), gate.Call{
			ID: c.args, Action: gate.CallTool, Name: c.tool, Args: gate.MustDoc(c.args), Who: gate.Local(),
			Session: gate.SessionKey{Owner: gate.Local().Owner, ID: "s"},
		})
		if err != nil && c.tool != "mail__gone" {
			t.Errorf("%s %s: %v", c.tool, c.args, err)
		}
	}
	if err := g.Close(t.Context()); err != nil { // waits for the shadow
		t.Fatal(err)
	}
	if s := g.Operator().Shadow(); s.ShadowCounts != (study.ShadowCounts{Compared: 4, Differed: 1}) || s.Revision == "" || s.Revision == g.Operator().Policy().Revision() {
		t.Errorf("the shadow at the end: %+v", s)
	}
	var found []string
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == audit.Shadow {
			found = append(found, strings.Join([]string{e.ID, e.Tool, e.Principal, string(e.Effect), string(e.Shadow.Effect), e.Shadow.Reasons[0]}, " "))
		}
	}
	want := []string{`{"to":"eve@evil.example"} mail__send local allow deny flow: the session has read untrusted content, and nobody trusted has named /to`}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

func TestNoShadow(t *testing.T) {
	g := start(t, gateway.Config{Recorder: new(records)})
	if s := g.Operator().Shadow(); s != nil {
		t.Errorf("a shadow that nobody asked for: %+v", s)
	}
	if err := g.Operator().SetShadow(t.Context(), &gateway.Policy{}); err != nil || g.Operator().Shadow() == nil {
		t.Errorf("a shadow that comes: %+v, %v", g.Operator().Shadow(), err)
	}
	if err := g.Operator().SetShadow(t.Context(), nil); err != nil || g.Operator().Shadow() != nil {
		t.Errorf("a shadow that goes: %+v, %v", g.Operator().Shadow(), err)
	}
}
