package policy_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// TestOverlooked: rules that look at one argument of a tool that has several like it.
func TestOverlooked(t *testing.T) {
	declared := func(name, properties string) *gate.Tool {
		tool := newTool(name)
		tool.Definition = gate.MustDoc(`{"inputSchema":{"type":"object","properties":` + properties + `}}`)
		return tool
	}
	tools := []*gate.Tool{
		declared("files__read", `{"path":{"type":"string"}}`),
		declared("files__read_multiple", `{"paths":{"type":"array"}}`),
		declared("files__move", `{"source":{},"destination":{},"comment":{}}`),
		declared("mail__send", `{"to":{},"cc":{},"body":{}}`),
	}
	const within = "\tnot data.wasmgate.paths.within(input.arguments.path, \"/srv\")\n}"
	for name, tt := range map[string]struct{ rules, want string }{
		"a server": {
			"deny contains \"x\" if {\n\tinput.tool.server == \"files\"\n" + within,
			"this rule reads only path; files__move has destination, source; files__read_multiple has paths",
		},
		"one tool":      {"deny contains \"x\" if {\n\tinput.tool.name == \"files__read\"\n" + within, ""},
		"some tools":    {"deny contains \"x\" if {\n\tinput.tool.name in {\"files__read\", \"files__move\"}\n" + within, "files__move has destination, source: let it read"},
		"some by names": {"deny contains \"x\" if {\n\tstartswith(input.tool.local_name, \"read\")\n" + within, "reads only path; files__read_multiple has paths: let it read"},
		"by a helper": {
			"allow contains \"x\" if {\n\tinput.tool.server == \"mail\"\n\tknown\n}\n\nknown if input.arguments.to == \"me@example.com\"",
			"this rule reads only to; mail__send has cc",
		},
		"all that there are": {
			"deny contains \"x\" if {\n\tinput.tool.server == \"files\"\n\tsome p in named\n\tp == \"/x\"\n}\n\nnamed contains input.arguments[n] if some n in [\"path\", \"source\"]", "",
		},
		"what has no kind": {"deny contains \"x\" if {\n\tinput.tool.server == \"mail\"\n\tinput.arguments.body == \"x\"\n}", ""},
		"no argument":      {"deny contains \"x\" if input.tool.server == \"mail\"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := policy.Overlooked(load(t, user(tt.rules), policy.Options{Packs: []string{"grants", "paths"}}), tools)
			switch {
			case tt.want == "" && len(got) > 0, tt.want != "" && len(got) != 1:
				t.Fatalf("warnings: %v", got)
			case tt.want != "" && (!got[0].Warning || got[0].File != "user.rego" || !strings.Contains(got[0].Message, tt.want)):
				t.Errorf("warning: %v\nwant %s", got[0], tt.want)
			}
		})
	}
}
