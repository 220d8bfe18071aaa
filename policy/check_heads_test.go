package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/policy"
)

// TestRulesThatNoDecisionCanHold: rules as other systems have them are found before a call meets
// them, at the user's line, with the form that is meant.
func TestRulesThatNoDecisionCanHold(t *testing.T) {
	for rule, want := range map[string]string{ // "" is no problem, ! begins an error
		`default allow := false`:                                                                        `!allow is a set to which all rules add, and is empty by default; write allow contains "reason" if`,
		`default deny := {}`:                                                                            `!deny is a set`,
		`allow if input.principal.id == "ann"`:                                                          `!allow is a set`,
		`allow := true if input.principal.id == "ann"`:                                                  `!allow is a set`,
		`deny["x"] := 1 if input.principal.id == "ann"`:                                                 `!deny is a set`,
		`labels := {"x"}`:                                                                               `!labels is a set`,
		`flow_effect(x) := x`:                                                                           "!data.wasmgate.flow_effect is defined by pack://flow.rego as well; choose another name",
		`flow_within(a) := a`:                                                                           "!data.wasmgate.flow_within is defined by pack://flow.rego as well",
		`deny contains {"msg": "no"} if input.principal.id == "ann"`:                                    "deny cannot hold this",
		`deny contains {"msg": m} if m := input.principal.id`:                                           "expected a text, or an object of reason and scopes, found one of msg",
		`deny contains m if m := {"msg": input.principal.id}`:                                           "found one of msg",
		`deny contains 5 if input.principal.id == "ann"`:                                                "deny cannot hold this",
		`deny contains x if { x := 5; input.principal.id == "ann" }`:                                    "deny cannot hold this",
		`deny contains "" if input.principal.id == "ann"`:                                               "deny cannot hold this",
		`allow contains {"reason": "x", "scopes": ["a"]} if input.tool.relay`:                           "allow cannot hold this",
		`ask contains ["x", input.principal.id] if input.tool.relay`:                                    "ask cannot hold this",
		`labels contains true if input.tool.relay`:                                                      "labels cannot hold this",
		`obligations contains {"type": "sandbox", "dirs": []} if input.tool.relay`:                      `unknown type of obligation`,
		`obligations contains {"type": "sandbox", "dirs": d} if d := input.tool.groups`:                 `unknown type of obligation "sandbox"`,
		`obligations contains {"type": "timeout", "for": d} if d := input.tool.name`:                    "has the members type and after",
		`obligations contains {"sandbx": {"dirs": d}} if d := input.tool.groups`:                        `unknown obligation "sandbx"`,
		`obligations contains "x" if input.tool.relay`:                                                  "obligations cannot hold this",
		`obligations contains {"sandbox": {"dirs": d}} if d := input.tool.groups`:                       "",
		`obligations contains {"type": "timeout", "after": "5s"} if input.tool.relay`:                   "",
		`deny contains {"reason": r, "scopes": ["a"]} if { r := input.tool.name; input.tool.relay }`:    "",
		`deny contains r if { r := concat(" ", ["x", input.tool.name]); input.tool.relay }`:             "",
		`deny contains r if { some r in input.tool.findings }`:                                          "",
		`deny contains input.tool.name if input.tool.relay`:                                             "",
		`deny contains r if { x := {"a": "no"}; r := x.a; input.tool.relay }`:                           "",
		`deny contains why[input.tool.name] if input.tool.relay` + "\n" + `why := {"files__read": "x"}`: "",
	} {
		problems, err := policy.Check(user(rule+"\n"), policy.Options{Packs: []string{"grants", "flow"}})
		if err != nil {
			t.Fatal(err)
		}
		want, fails := strings.CutPrefix(want, "!")
		meant := func(p policy.Problem) bool {
			return p.File == "user.rego" && p.Line == 3 && p.Warning != fails && strings.Contains(p.Message, want)
		}
		if want == "" && slices.ContainsFunc(problems, func(p policy.Problem) bool { return !p.Warning || strings.Contains(p.Message, "cannot hold") }) ||
			want != "" && !slices.ContainsFunc(problems, meant) {
			t.Errorf("%s: %v, want %q", rule, problems, want)
		}
	}
}
