package policy_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

func TestCheckWarns(t *testing.T) {
	unraced.Long(t)
	tests := map[string]struct {
		rules  string
		grants []policy.Grant
		want   string // in the one warning; "" for none
		line   int
	}{
		"an action that is none": {
			rules: `deny contains "x" if input.action == "tool/call"`, line: 3,
			want: `there is no action "tool/call", so input.action is never that; did you mean "tools/call"?`,
		},
		"an action that is like none": {rules: `deny contains "x" if input.action == "everything"`, line: 3, want: `never that`},
		"an action in a set": {
			rules: `deny contains "x" if input.action in {"tools/call", "resource/read"}`, line: 3, want: `did you mean "resources/read"?`,
		},
		"an action, turned round, in a helper": {
			rules: "allow contains \"x\" if {\n\tinput.tool.server == \"a\"\n\tcalls\n}\n\ncalls if \"tools/Call\" == input.action", line: 8,
			want: `did you mean "tools/call"?`,
		},
		"all actions": {rules: `allow contains "x" if input.action in ["tools/call", "sandbox/http", "admin/grant"]`},
		"a rule that is looked at for every call": {
			rules: `deny contains "x" if not startswith(input.arguments.title, "ok")`, line: 3, want: "deny is evaluated for every call",
		},
		"a question about what nothing allows": {
			rules: `ask contains "x" if input.tool.server == "a"`, line: 3,
			want: `A question only narrows what is allowed; grant it, or write: allow contains "x" if input.tool.server == "a"`,
		},
		"a question about a tool that is not granted": {
			rules: `ask contains "x" if input.tool.name == "b__c"`, line: 3, grants: someone, want: "write: wasmgate grant b__c --to NAME",
		},
		"a question about a server of which something is granted": {rules: `ask contains "x" if input.tool.server == "files"`, grants: someone},
		"a question about a server, allowed by a rule": {
			rules: "ask contains \"x\" if input.tool.server == \"a\"\n\nallow contains \"y\" if input.tool.name == \"a__b\"",
		},
		"a question about a server of which a rule allows nothing": {
			rules: "ask contains \"x\" if input.tool.server == \"a\"\n\nallow contains \"y\" if input.tool.name == \"b__b\"", line: 3,
			want: "write: wasmgate grant 'a__*' --to NAME",
		},
		"a question that something may allow": {
			rules: "ask contains \"x\" if input.tool.server == \"a\"\n\nallow contains \"y\" if { input.action == \"tools/call\"; \"dev\" in input.principal.roles }",
		},
		"a condition on all but one": {rules: "allow contains \"y\" if input.action == \"tools/call\"\n\nask contains \"x\" if input.tool.server != \"a\"", line: 5, want: "ask is evaluated for every call"},
		"the action first":           {rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tnot startswith(input.arguments.title, \"ok\")\n}"},
		"the beginning of a name":    {rules: `deny contains "x" if startswith(input.tool.local_name, "write_")`},
		"the beginning of a path": {
			rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tnot startswith(input.arguments.path, \"/srv/\")\n}", line: 5, want: `write paths.within(p, "/srv/docs")`,
		},
		"a part of a path, by the name of the argument": {
			rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tcontains(input.arguments.targetFile, input.tool.server)\n}", line: 5, want: "contains on a path",
		},
		"the beginning of one of several": {
			rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tsome p in input.arguments.list\n\tnot startswith(p, \"C:\\\\srv\")\n}", line: 6, want: "startswith on a path",
		},
		"the beginning of a URL": {
			rules: "allow contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tstartswith(input.arguments.q, \"https://good.example\")\n}", line: 5, want: "urls.within",
		},
		"the beginning of what is not a path": {
			rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tstartswith(input.arguments.title, \"DRAFT\")\n}",
		},
		"the kind of a file": {
			rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tnot endswith(input.arguments.path, \".tar.gz\")\n}",
		},
		"the name of a file": {
			rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tendswith(input.arguments.path, \"passwd\")\n}", line: 5, want: "endswith on a path",
		},
		"no condition": {rules: `allow contains "x" if true`},
		"going through all grants": {
			rules: "allow contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tsome g in data.grants\n\tinput.tool.name in g.tools\n}", line: 3,
			want: "allow goes through all grants for each call; ask wasmgate.granted",
		},
		"asking the index of grants": {
			rules: "deny contains \"x\" if {\n\tinput.action == \"tools/call\"\n\tnot wasmgate.granted(data.grants, \"tools\", input.tool.name, \"bob\", [])\n}",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := policy.Check(user(tt.rules), policy.Options{Grants: tt.grants})
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("problems: %v", got)
				}
				return
			}
			if len(got) != 1 || !got[0].Warning || got[0].File != "user.rego" || got[0].Line != tt.line || !strings.Contains(got[0].Message, tt.want) {
				t.Errorf("problems: %v\nwant one warning in line %d: %s", got, tt.line, tt.want)
			}
		})
	}
}

// TestPacksThatAskWithoutGrants: they would refuse everything, which is said at once.
func TestPacksThatAskWithoutGrants(t *testing.T) {
	for _, pack := range []string{"approve", "flow-ask"} {
		e := load(t, nil, policy.Options{Packs: []string{pack}})
		if got := policy.IdleAsks(e); len(got) != 1 || !strings.Contains(got[0].Message, "write policy: {packs: [grants, "+pack+"]}") {
			t.Errorf("%s: %v", pack, got)
		}
		if got := policy.IdleAsks(load(t, nil, policy.Options{Packs: []string{"grants", pack}})); len(got) != 0 {
			t.Errorf("%s with grants: %v", pack, got)
		}
		if got := policy.IdleAsks(load(t, user(`allow contains "x" if true`), policy.Options{Packs: []string{pack}})); len(got) != 0 {
			t.Errorf("%s with a rule: %v", pack, got)
		}
	}
}
