package policy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

func TestVisible(t *testing.T) {
	const anything = `allow contains "anything goes" if true
`
	sandboxed := newTool("local__hash")
	sandboxed.Sandboxed = true
	capable := newTool("local__fetch")
	capable.Sandboxed, capable.Capabilities = true, gate.MustDoc(`{"http":[]}`)
	tests := map[string]struct {
		rules string
		tool  *gate.Tool
		want  bool
	}{
		"granted":                                    {"", newTool("files__read_x"), true},
		"not granted":                                {"", newTool("files__write_x"), false},
		"sandboxed without capability":               {"", sandboxed, true},
		"sandboxed with a capability":                {"", capable, false},
		"allowed for some arguments":                 {`allow contains "x" if input.arguments.a == 1`, newTool("a__b"), true},
		"allowed for some arguments of another tool": {`allow contains "x" if { input.tool.name == "a__c"; input.arguments.a == 1 }`, newTool("a__b"), false},
		"allowed in some sessions":                   {`allow contains "x" if not "untrusted" in input.session.labels`, newTool("a__b"), true},
		"allowed by what the whole input says":       {`allow contains "x" if object.get(input, ["arguments", "a"], 0) == 1`, newTool("a__b"), true},
		"allowed for a client that may be another":   {`allow contains "x" if input.principal.client.name == "editor"`, newTool("a__b"), true},
		"allowed for a client, seen from above":      {`allow contains "x" if object.get(input.principal, ["client", "name"], "") == "editor"`, newTool("a__b"), true},
		"allowed at some times":                      {`allow contains "x" if time.now_ns() > 9000000000000000000`, newTool("a__b"), true},
		"allowed by an error that may not happen":    {`allow contains "x" if { input.arguments.a; to_number(input.tool.name) }`, newTool("a__b"), true},
		"asked":                                  {anything + `ask contains "x" if true`, newTool("a__b"), true},
		"asked, and not allowed":                 {`ask contains "x" if true`, newTool("a__b"), false},
		"another action allowed":                 {`allow contains "x" if input.action == "resources/read"`, newTool("a__b"), false},
		"denied":                                 {anything + `deny contains "x" if true`, newTool("a__b"), false},
		"denied with a reason that is computed":  {anything + `deny contains r if { some w in ["a", "b"]; r := sprintf("%s %s", [w, input.tool.name]) }`, newTool("a__b"), false},
		"denied by one rule of several":          {anything + "deny contains \"x\" if input.arguments.a\n\ndeny contains \"y\" if input.tool.server == \"a\"", newTool("a__b"), false},
		"denied for some arguments":              {anything + `deny contains "x" if input.arguments.a == 1`, newTool("a__b"), true},
		"denied for all but some arguments":      {anything + `deny contains "x" if not input.arguments.a == 1`, newTool("a__b"), true},
		"denied unless every element is good":    {anything + `deny contains "x" if not good` + "\n\ngood if every x in input.arguments.list { x > 1 }", newTool("a__b"), true},
		"denied when a helper fails on the tool": {anything + `deny contains "x" if not good` + "\n\ngood if input.tool.pinned", newTool("a__b"), false},
		"denied for its provenance":              {anything + `deny contains "x" if not "trusted" in input.provenance["/a"]`, newTool("a__b"), true},
		"denied for a reason of the arguments":   {anything + `deny contains r if r := sprintf("%v", [input.arguments])`, newTool("a__b"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(tt.rules), policy.Options{Grants: someone})
			for range 2 { // the second answer comes from the cache
				got, err := e.Visible(t.Context(), alice, []*gate.Tool{tt.tool})
				if err != nil || len(got) != 1 || got[0] != tt.want {
					t.Errorf("Visible = %v, %v; want %v", got, err, tt.want)
				}
			}
		})
	}
}

func TestVisibleTellsPrincipalsApart(t *testing.T) {
	e := load(t, user(`allow contains "x" if input.principal.claims.team == "red"`), policy.Options{Grants: []policy.Grant{
		{To: []string{"role:dev"}, Tools: []string{"*"}},
	}})
	for name, tt := range map[string]struct {
		who  gate.Principal
		want bool
	}{
		"by role":        {gate.Principal{Roles: []string{"dev"}}, true},
		"by no role":     {gate.Principal{}, false},
		"by two in one":  {gate.Principal{Roles: []string{"a\" \"dev"}}, false},
		"by claims":      {gate.Principal{Claims: gate.MustDoc(`{"team":"red"}`)}, true},
		"by other claim": {gate.Principal{Claims: gate.MustDoc(`{"team":"blue"}`)}, false},
	} {
		got, err := e.Visible(t.Context(), &tt.who, []*gate.Tool{benchTool})
		if err != nil || got[0] != tt.want {
			t.Errorf("%s: Visible = %v, %v; want %v", name, got, err, tt.want)
		}
	}
}

var benchTool = newTool("a__b")

func TestVisibleFails(t *testing.T) {
	e := load(t, nil, policy.Options{})
	if _, err := e.Visible(ended(), alice, []*gate.Tool{newTool("a__b")}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: error = %v", err)
	}
	if _, err := e.Visible(t.Context(), nil, nil); err == nil {
		t.Error("no principal: no error")
	}
	if v, err := e.Visible(t.Context(), alice, []*gate.Tool{nil}); err == nil || v != nil {
		t.Errorf("no tool: %v, %v", v, err)
	}
}

// TestALoopWhileListingHidesNothing: a tool for which the policy cannot be
// evaluated in time stays visible, others are listed, and its calls are denied.
func TestALoopWhileListingHidesNothing(t *testing.T) {
	e := load(t, user(`deny contains "x" if {
	input.tool.name == "a__slow"
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j < 0
}`), policy.Options{Timeout: 50 * time.Millisecond, Grants: []policy.Grant{{To: []string{"*"}, Tools: []string{"a__*"}}}})
	got, err := e.Visible(t.Context(), alice, []*gate.Tool{newTool("a__slow"), newTool("b__x")})
	if err != nil || !slices.Equal(got, []bool{true, false}) {
		t.Errorf("Visible = %v, %v; want [true false]", got, err)
	}
	if _, err := e.Authorize(t.Context(), query("a__slow", "{}")); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("Authorize: error = %v, want that of too many steps", err)
	}
}

// conditions are what the rules of random policies are made of: known parts of
// the input, unknown ones, and both by detours.
var conditions = []string{
	`input.tool.server == "a"`, `input.tool.local_name == "x"`, `startswith(input.tool.local_name, "y")`,
	`input.tool.sandboxed`, `"dev" in input.principal.roles`, `input.principal.id == "alice"`,
	`input.arguments.n == 1`, `input.arguments.n > 1`, `not input.arguments.n == 1`, `startswith(input.arguments.s, "p")`,
	`not startswith(input.arguments.s, "p")`, `count(input.arguments) == 0`, `some k, v in input.arguments; k == v`,
	`every x in input.arguments.list { x < 2 }`, `object.get(input.arguments, "n", 1) == 1`,
	`object.get(input, ["arguments", "n"], 1) == 1`, `object.get(input.principal, ["client", "name"], "c") == "c"`,
	`"untrusted" in input.session.labels`, `not "untrusted" in input.session.labels`, `count(input.session.labels) > 0`,
	`input.principal.client.name == "c"`, `input.principal.client.name != "c"`, `input[_].n == 1`,
	`not helper`, `helper`, `pick(input.tool.local_name) == 1`, `pick(input.arguments.s) == 1`,
	`walk(input, [_, 1])`, `json.marshal(input.arguments) == "{}"`, `not wasmgate_unknown`, `input.provenance == {}`,
	`[x | x := input.arguments.list[_]; x > 1] == []`, `{name | input.arguments[name]} == {"n"}`, `time.now_ns() > 0`,
	`to_number(input.arguments.s) == 1`, `true`,
}

const helpers = `
helper if input.arguments.n == 1

helper if input.tool.server == "b"

pick(x) := 1 if x == "x"

pick(x) := 2 if x == "y1"

wasmgate_unknown if input.arguments.nothing
`

// TestNoCallOfAHiddenToolPasses is the promise that listing and calling are one
// policy: over random policies, grants, principals, tools and calls.
func TestNoCallOfAHiddenToolPasses(t *testing.T) {
	unraced.Long(t)
	r := seed.Rand(t)
	one := func(list []string) string { return list[r.IntN(len(list))] }

	var tools []*gate.Tool
	for _, name := range []string{"a__x", "a__y1", "b__x", "b__y2", "c__z"} {
		tool := newTool(name)
		tool.Sandboxed = r.IntN(2) == 0
		tools = append(tools, tool)
	}
	args := []string{`{}`, `{"n":1}`, `{"n":2}`, `{"s":"pq"}`, `{"s":"x"}`, `{"s":"1","n":1}`, `{"n":"n"}`, `{"list":[1]}`, `{"list":[1,3],"n":3}`, `{"nothing":true}`}
	hidden, passed := 0, 0
	for range 60 {
		var rules strings.Builder
		for range 1 + r.IntN(5) {
			fmt.Fprintf(&rules, "%s contains \"r%d\" if {\n", one([]string{"allow", "allow", "ask", "deny"}), r.IntN(3))
			for _, i := range r.Perm(len(conditions))[:1+r.IntN(3)] {
				fmt.Fprintf(&rules, "\t%s\n", conditions[i])
			}
			rules.WriteString("}\n\n")
		}
		e := load(t, user(rules.String()+helpers), policy.Options{Grants: randomGrants(r, r.IntN(4))})
		for range 4 {
			who := &gate.Principal{Owner: gate.Owner{ID: one([]string{"alice", "bob"})}, Roles: [][]string{nil, {"dev"}, {"ops", "dev"}}[r.IntN(3)]}
			visible, err := e.Visible(t.Context(), who, tools)
			if err != nil {
				t.Fatal(err)
			}
			for i, tool := range tools {
				if visible[i] {
					continue
				}
				hidden++
				for _, a := range args {
					q := gate.Query{Call: &gate.Call{
						Action: gate.CallTool, Who: who, Args: gate.MustDoc(a), ClientName: one([]string{"", "c", "d"}),
					}, Tool: tool, Session: gate.Session{Labels: [][]string{nil, {"untrusted"}}[r.IntN(2)]}}
					d, err := e.Authorize(t.Context(), q)
					if err == nil && (d.Effect != gate.Deny || !d.Hidden) {
						t.Fatalf("hidden tool %s, arguments %s: %+v\nprincipal %+v\n%s", tool.Name, a, d, who, rules.String())
					}
				}
			}
			q := gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: who, Args: gate.MustDoc(one(args))}, Tool: tools[r.IntN(len(tools))]}
			if d, err := e.Authorize(t.Context(), q); err == nil && d.Effect != gate.Deny {
				passed++
			}
		}
	}
	t.Logf("%d hidden tools, %d calls passed", hidden, passed)
	if hidden == 0 || passed == 0 {
		t.Error("the policies hide everything or nothing; the test says nothing")
	}
}
