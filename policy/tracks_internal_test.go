package policy

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

func TestMentionsOrigin(t *testing.T) {
	for rule, want := range map[string]bool{
		`allow contains "x" if input.tool.name == "a"`:        false,
		`allow contains "x" if "p" in input.provenance["/a"]`: true,
		`allow contains "x" if count(input.carried) > 0`:      true,
		`allow contains json.marshal(input) if true`:          true,
		`allow contains k if input[k]`:                        true,
		`allow contains "x" if data.x[input.carried[_]]`:      true,
		`allow contains "x" if x := {"a": [input]}`:           true,
	} {
		m := ast.MustParseModule("package wasmgate\n\n" + rule)
		if got := mentionsOrigin(m); got != want {
			t.Errorf("%s: %v, want %v", rule, got, want)
		}
	}
}
