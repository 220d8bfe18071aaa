package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// Rules that refer to what does not exist, or to themselves, do not load, and say
// so; what is only known to be missing at a call allows nothing.
func TestRulesAboutWhatIsNotThere(t *testing.T) {
	for name, tt := range map[string]struct{ rules, want string }{
		"a function that does not exist":        {`allow contains "x" if nonsense(input)`, "user.rego:3: undefined function nonsense"},
		"a function of a package that is none":  {`allow contains "x" if data.team.trusted(input.principal.id)`, "user.rego:3: undefined function data.team.trusted"},
		"a function of a pack that is left out": {`allow contains "x" if data.wasmgate.paths.within("/a", "/b")`, "user.rego:3: undefined function data.wasmgate.paths.within; it is in the pack paths: add it to policy.packs, or write --pack paths"},
		"a variable that is none":               {`allow contains "x" if principal == "ann"`, "user.rego:3: var principal is unsafe"},
		"fields that the input does not have":   {`allow contains "x" if input.tool.owner == "ann"`, `user.rego:3: input.tool has no field "owner"; it has annotations, `},
		"a rule about itself":                   {`allow contains "x" if count(allow) == 0`, "user.rego:3: rule data.wasmgate.allow is recursive"},
		"rules about each other":                {"a if not b\n\nb if not a\n\nallow contains \"x\" if a", "is recursive"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Load(t.Context(), user(tt.rules), policy.Options{Packs: []string{}})
			var compile *policy.CompileError
			if !errors.As(err, &compile) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	for name, rules := range map[string]string{
		"data that is not there":            `allow contains "x" if input.tool.name in data.team.tools`,
		"arguments that are not there":      `allow contains "x" if input.arguments.owner == input.principal.claims.boss`,
		"data that is not there, negated":   `deny contains "x" if not input.tool.name in data.team.tools`,
		"what is allowed and denied":        "allow contains \"x\"\n\ndeny contains \"y\" if input.tool.server == \"files\"",
		"what is allowed, asked and denied": "allow contains \"x\"\n\nask contains \"z\"\n\ndeny contains \"y\"",
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(rules), policy.Options{Packs: []string{}})
			if d := decide(t, e, "files__read"); d.Effect != gate.Deny {
				t.Errorf("decided %+v, want deny", d)
			}
		})
	}
}
