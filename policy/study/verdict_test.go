package study_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

func TestVerdict(t *testing.T) {
	const anything = "allow contains \"x\" if true\n\n"
	tests := map[string]struct {
		rules     string
		want      study.Verdict
		condition string
	}{
		"nothing allows":         {"", study.Never, ""},
		"everything is allowed":  {anything, study.Always, ""},
		"denied":                 {anything + `deny contains "x" if input.tool.server == "a"`, study.Never, ""},
		"asked":                  {anything + `ask contains "x" if true`, study.Always, "a person is asked"},
		"asked, and not allowed": {`ask contains "x" if true`, study.Never, ""},
		"asked of what may pass": {"allow contains \"y\" if input.arguments.n > 1\n\nask contains \"x\" if true", study.Conditional, "if argument n is greater than 1; a person is asked"},
		"a comparison":           {`allow contains "x" if input.arguments.n <= 10`, study.Conditional, "if argument n is at most 10"},
		"a comparison, turned":   {`allow contains "x" if 10 < input.arguments.n`, study.Conditional, "if argument n is greater than 10"},
		"a prefix":               {`allow contains "x" if startswith(input.arguments.file.path, "/srv/")`, study.Conditional, `if argument file.path begins with "/srv/"`},
		"all but a prefix":       {anything + `deny contains "x" if not startswith(input.arguments.path, "/srv/")`, study.Conditional, `not if argument path does not begin with "/srv/"`},
		"one of some":            {`allow contains "x" if input.arguments.mode in {"r", "w"}`, study.Conditional, `if argument mode is one of "r", "w"`},
		"several, and others": {`allow contains "x" if { input.arguments.a == 1; input.arguments.b != "c" }

allow contains "y" if input.arguments.force`, study.Conditional, `if argument a is 1 and argument b is not "c", or argument force is set`},
		"a helper's alternatives": {"allow contains \"x\" if h\n\nh if input.arguments.a == 1\n\nh if input.arguments.b == 2", study.Conditional, "if argument a is 1, or argument b is 2"},
		"neither of a helper's":   {anything + "deny contains \"x\" if not h\n\nh if input.arguments.a == 1\n\nh if input.arguments.b == 2", study.Conditional, "not if argument a is not 1 and argument b is not 2"},
		"the session":             {anything + `deny contains "x" if "untrusted" in input.session.labels`, study.Conditional, `not if session.labels contains "untrusted"`},
		"asked of some":           {anything + `ask contains "x" if input.arguments.n > 1`, study.Always, "a person is asked if argument n is greater than 1"},
		"not simple":              {`allow contains "x" if every x in input.arguments.list { x > 1 }`, study.Conditional, "if conditions on the arguments hold"},
		"not simple, and more":    {`allow contains "x" if { count(input.arguments.list) > 1; input.session.labels == [] }`, study.Conditional, "if conditions on the arguments and what the session has read hold"},
		"the clock":               {`allow contains "x" if time.now_ns() > 5`, study.Conditional, "if conditions of the rules hold"},
		"fails in any case":       {`allow contains "x" if to_number(input.tool.name) > 1`, study.Conditional, "the policy cannot be evaluated without a call: user.rego:3: eval_builtin_error: to_number: strconv.ParseFloat: parsing \"a__b\": invalid syntax"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(tt.rules), policy.Options{Packs: noPacks})
			tool := newTool("a__b")
			got, condition, err := study.VerdictOf(t.Context(), e, alice, tool)
			if err != nil || got != tt.want || condition != tt.condition {
				t.Errorf("%s, %q, %v\nwant %s, %q", got, condition, err, tt.want, tt.condition)
			}
			visible, err := e.Visible(t.Context(), alice, []*gate.Tool{tool})
			if err != nil || visible[0] != (tt.want != study.Never) {
				t.Errorf("visible: %v, %v", visible, err)
			}
		})
	}
	e := load(t, nil, policy.Options{})
	if _, _, err := study.VerdictOf(ended(), e, alice, newTool("a__b")); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	if _, _, err := study.VerdictOf(t.Context(), e, nil, nil); err == nil {
		t.Error("no principal: no error")
	}
}
