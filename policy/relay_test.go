package policy_test

import (
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy"
)

func relayTool() *gate.Tool {
	t := newTool("catalog__call")
	t.Relay = true
	return t
}

// With all packs together a tool that carries out others passes, in a session that has
// read untrusted content too, under no obligation: what counts is the other call.
func TestPacksLetRelaysPass(t *testing.T) {
	e := load(t, nil, policy.Options{
		Packs:      []string{"approve", "flow", "grants", "ratelimit", "readonly"},
		RateLimits: []policy.RateLimit{{To: []string{"*"}, Calls: 1, Per: "1h"}},
		Labels:     []policy.Label{{Pattern: "*", ToolLabels: provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectExternal}}}},
	})
	for name, tt := range map[string]struct {
		tool *gate.Tool
		want gate.Effect
	}{
		"a tool that carries out others": {relayTool(), gate.Allow},
		"another of that name":           {newTool("catalog__call"), gate.Deny},
	} {
		q := query("catalog__call", `{"tool":"mail__send"}`)
		q.Tool, q.Session.Labels = tt.tool, gate.NewLabels(provenance.Untrusted, provenance.Private)
		d, err := e.Authorize(t.Context(), q)
		if err != nil || d.Asked().Effect != tt.want || tt.want == gate.Allow && len(d.Obligations) > 0 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		visible, err := e.Visible(t.Context(), q.Call.Who, []*gate.Tool{tt.tool})
		if err != nil || visible[0] != (tt.want == gate.Allow) {
			t.Errorf("%s: visible %v, %v", name, visible, err)
		}
	}
}

// Rules see such a tool as any other, and a policy that allows nothing allows none of them.
func TestRulesDecideOnRelays(t *testing.T) {
	for name, tt := range map[string]struct {
		rules string
		packs []string
		want  gate.Effect
	}{
		"a rule denies it":             {`deny contains "no catalog" if input.tool.server == "catalog"`, nil, gate.Deny},
		"a rule denies what it calls":  {`deny contains "no mail" if startswith(input.arguments.tool, "mail__")`, nil, gate.Deny},
		"a rule denies something else": {`deny contains "no mail" if input.tool.server == "mail"`, nil, gate.Allow},
		"a rule asks":                  {`ask contains "sure?" if input.tool.relay`, nil, gate.Ask},
		"nothing allows it":            {`allow contains "alice" if input.tool.server == "mail"`, noPacks, gate.Deny},
		"a rule allows it":             {`allow contains "it does nothing itself" if input.tool.relay`, noPacks, gate.Allow},
	} {
		e := load(t, user(tt.rules), policy.Options{Packs: tt.packs})
		q := query("catalog__call", `{"tool":"mail__send"}`)
		q.Tool = relayTool()
		if d, err := e.Authorize(t.Context(), q); err != nil || d.Effect != tt.want {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

// What the operator says of all tools, or of many servers, is not said of these.
func TestLabelsOfRelays(t *testing.T) {
	external := provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectExternal}}
	for pattern, own := range map[string]bool{"*": false, "cat*": false, "catalog__*": true, "catalog__call": true} {
		e := load(t, nil, policy.Options{Labels: []policy.Label{{Pattern: pattern, ToolLabels: external}}})
		got, ok := e.Labels(relayTool())
		want := []provenance.ToolEffect{provenance.EffectRead}
		if own {
			want = external.Effects
		}
		if !ok || !slices.Equal(got.Effects, want) || !own && got.Result != provenance.ResultEcho {
			t.Errorf("%s: %+v, %t", pattern, got, ok)
		}
	}
}
