package study_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

func TestExplain(t *testing.T) {
	unraced.Long(t)
	const guard = `deny contains "only below /srv" if {
	input.tool.local_name == "write"
	not startswith(input.arguments.path, "/srv/")
}

allow contains "small writes" if {
	input.action == "tools/call"
	input.tool.local_name == "write"; input.arguments.size < 10
	"untrusted" in input.session.labels
}

ask contains sprintf("%s is asked", [input.tool.name]) if input.tool.server == "mail"

allow contains "mail, to a person's knowledge" if input.tool.name == "mail__send"
`
	noArguments := map[string]string{"input.arguments": "arguments not recorded"}
	tests := map[string]struct {
		rules, tool, args string
		labels            []string
		unknown           map[string]string
		want              string
	}{
		"granted": {tool: "files__read_x", want: `{"effect":"allow",
			"decided":[{"set":"allow","file":"pack://grants.rego","line":9,"reason":"files__read_* is granted to alice"}]}`},
		"nothing allows": {tool: "files__stat", want: `{"effect":"deny","remedy":"wasmgate grant files__stat --to alice"}`},
		"denied": {rules: guard, tool: "files__write", args: `{"path":"/etc/x","size":1}`, labels: []string{"untrusted"}, want: `{"effect":"deny",
			"decided":[{"set":"deny","file":"user.rego","line":3,"reason":"only below /srv","holds":[
				{"file":"user.rego","line":4,"text":"input.tool.local_name == \"write\""},{"file":"user.rego","line":5,"text":"not startswith(input.arguments.path, \"/srv/\")"}]}],
			"otherwise":{"effect":"allow"}}`},
		"denied, and without that nothing allows it": {rules: `deny contains "never" if true`, tool: "files__stat", want: `{"effect":"deny",
			"decided":[{"set":"deny","file":"user.rego","line":3,"reason":"never"}],"otherwise":{"effect":"deny","remedy":"wasmgate grant files__stat --to alice"}}`},
		"denied, and without that a person is asked": {rules: guard + `deny contains "no mail" if input.tool.local_name == "send"`, tool: "mail__send", want: `{"effect":"deny",
			"decided":[{"set":"deny","file":"user.rego","line":17,"reason":"no mail","holds":[{"file":"user.rego","line":17,"text":"input.tool.local_name == \"send\""}]}],
			"otherwise":{"effect":"ask"}}`},
		"denied, and the rest depends on the arguments": {rules: `deny contains "never" if true` + "\n" + `allow contains "small" if input.arguments.n < 1`, tool: "files__stat", unknown: noArguments, want: `{"effect":"deny",
			"decided":[{"set":"deny","file":"user.rego","line":3,"reason":"never"}],"open":[],"otherwise":{"effect":""}}`},
		"asked": {rules: guard, tool: "mail__send", want: `{"effect":"ask",
			"decided":[{"set":"ask","file":"user.rego","line":14,"reason":"mail__send is asked"}]}`},
		"what nothing allows is not asked": {rules: guard, tool: "mail__wipe", want: `{"effect":"deny","remedy":"wasmgate grant mail__wipe --to alice"}`},
		"asked, if the open rule allows": {rules: "ask contains \"a person\" if input.tool.server == \"files\"\n\nallow contains \"x\" if input.arguments.n < 1", tool: "files__stat", unknown: noArguments, want: `{"effect":"",
			"open":[{"set":"allow","file":"user.rego","line":5,"reason":"x","unknown":["arguments not recorded"],
				"condition":{"file":"user.rego","line":5,"text":"input.arguments.n < 1"}}]}`},
		"nearly allowed, by a condition on a line with another": {rules: guard, tool: "files__write", args: `{"path":"/srv/x","size":12}`, want: `{"effect":"deny",
			"nearly":[{"set":"allow","file":"user.rego","line":8,"condition":{"file":"user.rego","line":10,"text":"input.arguments.size < 10"}}],
			"remedy":"wasmgate grant files__write --to alice"}`},
		"nearly allowed, by the last condition": {rules: guard, tool: "files__write", args: `{"path":"/srv/x","size":2}`, want: `{"effect":"deny",
			"nearly":[{"set":"allow","file":"user.rego","line":8,"condition":{"file":"user.rego","line":11,"text":"\"untrusted\" in input.session.labels"}}],
			"remedy":"wasmgate grant files__write --to alice"}`},
		"a condition breaks": {rules: guard, tool: "files__write", args: `{"path":7}`, want: `{"effect":"deny","error":"user.rego:5: eval_type_error: startswith: operand 1 must be string but got number",
			"decided":[{"set":"deny","file":"user.rego","line":3,"condition":{"file":"user.rego","line":5,"text":"not startswith(input.arguments.path, \"/srv/\")",
				"error":"user.rego:5: eval_type_error: startswith: operand 1 must be string but got number"}}],
			"nearly":[{"set":"allow","file":"user.rego","line":8,"condition":{"file":"user.rego","line":10,"text":"input.arguments.size < 10"}}]}`},
		"arguments are not known": {rules: guard, tool: "files__write", args: `{"path":"/etc/x"}`, unknown: noArguments, want: `{"effect":"",
			"nearly":[{"set":"allow","file":"user.rego","line":8,"condition":{"file":"user.rego","line":11,"text":"\"untrusted\" in input.session.labels"}}],
			"open":[{"set":"deny","file":"user.rego","line":3,"reason":"only below /srv","unknown":["arguments not recorded"],
				"condition":{"file":"user.rego","line":5,"text":"not startswith(input.arguments.path, \"/srv/\")"}}]}`},
		"arguments are not known and change nothing": {rules: guard, tool: "files__read_x", unknown: noArguments, want: `{"effect":"allow",
			"decided":[{"set":"allow","file":"pack://grants.rego","line":9,"reason":"files__read_* is granted to alice"}]}`},
		"what would be, if the open rule did not hold": {rules: `deny contains "x" if input.arguments.n == 1`, tool: "files__read_x", unknown: noArguments, want: `{"effect":"",
			"decided":[{"set":"allow","file":"pack://grants.rego","line":9,"reason":"files__read_* is granted to alice"}],
			"open":[{"set":"deny","file":"user.rego","line":3,"reason":"x","unknown":["arguments not recorded"],
				"condition":{"file":"user.rego","line":3,"text":"input.arguments.n == 1"}}]}`},
		"an open helper": {rules: "allow contains \"x\" if {\n\tinput.tool.server == \"files\"\n\tsmall\n}\n\nsmall if input.arguments.n < 1", tool: "files__stat", unknown: noArguments, want: `{"effect":"",
			"open":[{"set":"allow","file":"user.rego","line":3,"reason":"x","unknown":["arguments not recorded"],
				"condition":{"file":"user.rego","line":5,"text":"small"}}]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(tt.rules), policy.Options{Grants: someone})
			if tt.args == "" {
				tt.args = "{}"
			}
			q := query(tt.tool, tt.args)
			q.Session = gate.Session{Labels: gate.NewLabels(tt.labels...)}
			got, err := study.Explain(t.Context(), e, study.Case{Query: q, Unknown: tt.unknown})
			if err != nil {
				t.Fatal(err)
			}
			if got.Effect != "" {
				if d, err := e.Authorize(t.Context(), q); d.Effect != got.Effect && (got.Error == "" || err == nil) {
					t.Errorf("explained as %s, decided %s, %v", got.Effect, d.Effect, err)
				}
			}
			if got.Revision != e.Revision() {
				t.Errorf("revision %q", got.Revision)
			}
			got.Revision = ""
			// What the pack says of all tools is left out.
			got.Nearly = without(got.Nearly, "pack://grants.rego")
			b, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var want study.Explanation
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			w, _ := json.Marshal(want)
			if diff := cmp.Diff(gate.MustDoc(string(w)).Value(), gate.MustDoc(string(b)).Value()); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplainOthers: what is no call of a tool is explained as it is decided.
func TestExplainOthers(t *testing.T) {
	prompt, page := newPrompt("files__greet"), newResource(gate.FeatureResource, "docs", "doc://a")
	form := gate.MustDoc(`{"message":"your password?","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}`)
	tests := map[string]struct {
		rules  string
		call   gate.Call
		tool   *gate.Tool
		not    []string // known
		then   gate.Decision
		effect gate.Effect
		remedy string // that it names
	}{
		"a prompt that nothing allows":          {call: gate.Call{Action: gate.GetPrompt, Name: "greet"}, tool: prompt, effect: gate.Deny, remedy: `prompts: ["files__greet"]`},
		"a prompt that a rule denies":           {rules: `deny contains "no" if input.prompt.server == "files"`, call: gate.Call{Action: gate.GetPrompt, Name: "greet"}, tool: prompt, effect: gate.Deny},
		"a resource":                            {call: gate.Call{Action: gate.ReadResource, Name: "doc://a"}, tool: page, effect: gate.Deny, remedy: `resources: ["doc://a"]`},
		"a form for a secret":                   {call: gate.Call{Action: actions.Elicit, Name: "files__read_x", Args: form}, tool: newTool("files__read_x"), effect: gate.Deny, remedy: "asks: [secrets]"},
		"a form for a secret that is not known": {call: gate.Call{Action: actions.Elicit, Name: "files__read_x"}, tool: newTool("files__read_x"), not: []string{"input.request"}},
		"sampling":                              {call: gate.Call{Action: actions.Sample, Name: "files__read_x"}, tool: newTool("files__read_x"), effect: gate.Deny, remedy: "asks: [sampling]"},
		"roots, asked during a prompt":          {call: gate.Call{Action: actions.ListRoots, Name: "greet"}, tool: prompt, effect: gate.Deny, remedy: `prompts: ["files__greet"], asks: [roots]`},
		"a form for a secret, by what was decided": {
			call: gate.Call{Action: actions.Elicit, Name: "files__read_x"}, tool: newTool("files__read_x"), not: []string{"input.request"},
			then: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows elicitation/create for a secret by server files for alice"}}, effect: gate.Deny, remedy: "asks: [secrets]",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(tt.rules), policy.Options{Grants: someone})
			tt.call.Who, tt.then.Revision = alice, e.Revision()
			unknown := make(map[string]string)
			for _, part := range tt.not {
				unknown[part] = "not recorded"
			}
			x, err := study.Explain(t.Context(), e, study.Case{Query: gate.Query{Call: &tt.call, Tool: tt.tool}, Unknown: unknown, Decision: tt.then})
			if err != nil {
				t.Fatal(err)
			}
			if x.Effect != tt.effect || !strings.Contains(x.Remedy, tt.remedy) || (tt.remedy == "") != (x.Remedy == "") {
				t.Errorf("%+v", x)
			}
		})
	}
}

func without(list []study.Explained, file string) []study.Explained {
	var kept []study.Explained
	for _, x := range list {
		if x.File != file {
			kept = append(kept, x)
		}
	}
	return kept
}
