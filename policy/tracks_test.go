package policy_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/policy"
)

// Sessions keep where values came from only if a rule may look at it.
func TestTracks(t *testing.T) {
	for rule, want := range map[string]bool{
		`allow contains "x" if input.tool.name == "a"`:          false,
		`allow contains "x" if "p" in input.provenance["/a"]`:   true,
		`allow contains "x" if count(input.carried) > 0`:        true,
		`allow contains json.marshal(input) if true`:            true,
		`allow contains k if input[k]`:                          true,
		`allow contains "x" if data.x[input.carried[_]]`:        true,
		`allow contains "x" if json.marshal({"a": [input]})`:    true,
		`allow contains "x" if input.arguments.provenance == 1`: false,
		`allow contains "x" if input.values["/a"].listed`:       true,
	} {
		e := load(t, user(rule), policy.Options{Packs: []string{}})
		values, origins := e.Tracks()
		if values != want {
			t.Errorf("%s: %v, want %v", rule, values, want)
		}
		if want := strings.Contains(rule, "values") || want && !strings.Contains(rule, "provenance") && !strings.Contains(rule, "carried"); origins != want {
			t.Errorf("%s: origins %v, want %v", rule, origins, want)
		}
	}
}
