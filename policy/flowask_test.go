package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policies"
	"github.com/wasmgate/wasmgate/policy"
)

// The pack flow-ask asks for exactly what flow denies, with the same reasons.
func TestFlowAskIsFlow(t *testing.T) {
	all := `allow contains "all" if input.action == "tools/call"`
	labels := []policy.Label{{Pattern: "pay__*", ToolLabels: provenance.ToolLabels{
		Result: provenance.ResultEcho, Effects: []provenance.ToolEffect{provenance.EffectExternal}, Control: []string{"/to"}, Content: []string{"/note"},
	}}}
	flow := load(t, user(all), policy.Options{Packs: []string{"flow"}, Labels: labels})
	asks := load(t, user(all), policy.Options{Packs: []string{"flow-ask"}, Labels: labels})
	if flow.Revision() == asks.Revision() {
		t.Error("both have one revision: to switch from one to the other would change nothing")
	}
	if values, _ := asks.Tracks(); !values {
		t.Error("flow-ask does not have values tracked")
	}
	denied := 0
	for _, session := range []gate.Session{{}, {Labels: gate.NewLabels(provenance.Untrusted)}, {Labels: gate.NewLabels(provenance.Private)}} {
		for _, args := range []string{`{}`, `{"to":"x"}`, `{"note":"see https://a.example/"}`, `{"note":"plain","amount":7}`} {
			for _, name := range []string{"pay__transfer", "other__tool"} {
				q := gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: gate.Local(), Args: gate.MustDoc(args)}, Tool: newTool(name), Session: session}
				a, err := flow.Authorize(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				b, err := asks.Authorize(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				want := a.Effect
				if want == gate.Deny {
					denied++
					want = gate.Ask
				}
				if b.Effect != want || !slices.Equal(a.Reasons, b.Reasons) {
					t.Errorf("%s %s with %v: flow %s %q, flow-ask %s %q", name, args, session.Labels, a.Effect, a.Reasons, b.Effect, b.Reasons)
				}
			}
		}
	}
	if denied == 0 {
		t.Error("nothing was denied: the test says nothing")
	}
}

// Each rule of deny became one of ask, and nothing else has changed.
func TestFlowAskIsMadeOfFlow(t *testing.T) {
	flow, _, err := policies.Pack("flow")
	if err != nil {
		t.Fatal(err)
	}
	asks, tests, err := policies.Pack("flow-ask")
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.Count(string(flow), "\ndeny contains ")
	if rules == 0 || strings.Contains(string(asks), "\ndeny") || strings.Count(string(asks), "\nask contains ") != rules {
		t.Errorf("%d rules in flow; flow-ask:\n%s", rules, asks)
	}
	if strings.Count(string(flow), "\n") != strings.Count(string(asks), "\n") {
		t.Error("lines have moved: reports would point at others")
	}
	if strings.Contains(string(tests), "wasmgate.deny") {
		t.Error("the tests look at the wrong set")
	}
}

// An obligation to ask is shown, and replayed, as an ask.
func TestApproveIsAnAsk(t *testing.T) {
	rules := user(`allow contains "all" if input.action == "tools/call"

obligations contains {"approve": true} if input.tool.server == "a"`)
	e := load(t, rules, policy.Options{Packs: []string{}})
	b, err := policy.Eval(t.Context(), e, []byte(`{"action":"tools/call","tool":{"server":"a"}}`))
	if err != nil || !strings.Contains(string(b), `"effect":"ask"`) {
		t.Errorf("%s, error %v", b, err)
	}
}
