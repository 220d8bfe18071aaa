package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// inFull decides as an engine does that has not met the tool before.
func inFull(ctx context.Context, e *policy.Engine, q gate.Query) (gate.Decision, error) {
	tool := *q.Tool
	q.Tool = &tool
	return e.Authorize(ctx, q)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWhatIsFixed says which decisions are found to depend on nothing that only the call brings.
func TestWhatIsFixed(t *testing.T) {
	unraced.Long(t)
	const anything = "allow contains \"anything goes\" if true\n\n"
	tests := map[string]struct {
		rules string
		want  int
	}{
		"a grant": {"", 1},
		"a condition on another tool comes first":         {`deny contains "x" if { input.tool.name == "a__c"; not startswith(input.arguments.s, "p") }`, 1},
		"a condition on another tool comes last":          {`deny contains "x" if { input.arguments.n == 1; "untrusted" in input.session.labels; input.tool.name == "a__c" }`, 1},
		"a denial, whatever allows":                       {anything + "deny contains \"x\" if input.tool.server == \"a\"\n\nallow contains \"y\" if input.arguments.n == 1", 1},
		"a question about what is allowed":                {anything + "ask contains \"x\" if input.tool.server == \"a\"", 1},
		"a question about what may be allowed":            {"ask contains \"x\" if input.tool.server == \"b\"\n\nallow contains \"y\" if { input.tool.name == \"a__b\"; input.arguments.n == 1 }", 0},
		"a question about what nothing allows":            {"ask contains \"x\" if input.arguments.n == 1\n\nallow contains \"y\" if input.tool.server == \"b\"", 1},
		"a denial for nothing allows":                     {"labels contains \"x\" if input.arguments.n == 1\n\nallow contains \"y\" if input.tool.server == \"b\"", 1},
		"obligations and labels of the tool":              {anything + "obligations contains {\"type\": \"timeout\", \"after\": \"5s\"} if input.tool.server == \"a\"\n\nlabels contains \"x\" if true", 1},
		"a reason that is computed":                       {`allow contains sprintf("%s may", [input.principal.id]) if true`, 1},
		"a condition on an argument":                      {anything + `deny contains "x" if input.arguments.n == 1`, 0},
		"a condition on the session":                      {anything + `deny contains "x" if "untrusted" in input.session.labels`, 0},
		"a label of an argument":                          {anything + `labels contains "x" if input.arguments.n == 1`, 0},
		"the client's name":                               {anything + `deny contains "x" if input.principal.client.name == "c"`, 0},
		"the clock":                                       {anything + `deny contains "x" if time.now_ns() < 0`, 0},
		"what could fail before it is another tool's":     {anything + `deny contains "x" if { to_number(input.arguments.s) == 1; lower(input.tool.local_name) == "c" }`, 0},
		"what could clash before it is another tool's":    {anything + "n := 1 if input.arguments.a\n\nn := 2 if input.arguments.b\n\ndeny contains \"x\" if n == 3", 0},
		"what fails for each call":                        {anything + `deny contains "x" if to_number(input.tool.name) == 1`, 0},
		"an obligation that is not understood, each call": {anything + `obligations contains {"type": "unknown"} if true`, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := policy.Options{Grants: []policy.Grant{{To: []string{"alice"}, Tools: []string{"a__b"}}}}
			if strings.Contains(name, "nothing allows") {
				o.Grants = nil
			}
			e := load(t, user(tt.rules), o)
			for range 3 {
				_, _ = e.Authorize(t.Context(), query("a__b", "{}"))
			}
			if got := e.Fixed(); got != 0 {
				t.Errorf("%d fixed decisions for tools that are met once", got)
			}
			q := query("a__b", "{}")
			for range 3 {
				_, _ = e.Authorize(t.Context(), q)
			}
			if got := e.Fixed(); got != tt.want {
				t.Errorf("%d fixed decisions, want %d", got, tt.want)
			}
		})
	}
}

// treacherous are conditions that fail for some calls, or look fixed.
var treacherous = []string{
	`to_number(input.tool.local_name) > 0`, `some z in input.arguments.list; to_number(z) > 1`, `clash == 3`, `not clash`, `clash`,
	`twice(input.arguments.n) == 3`, `not twice(input.tool.local_name) == 3`, `{"k": j | some j in input.arguments.list} == {}`,
	`{m: 1 | some m in input.arguments.list} == {}`, `count(input.arguments.n) > 1`, `not count(input.arguments.list) > 1`,
	`input.tool.name in {"a__x", "b__x"}`, `input.arguments == {}`, `input.session.id == "s1"`, `not input.tool.sandboxed`,
	`helper with input.arguments as {"n": 1}`, `helper with input as {"tool": {"server": "b"}}`, `not helper with input.arguments as {"n": 2}`,
	`input.tool.labels == input.arguments`, `"a" == input.tool[input.arguments.s]`, `names[input.tool.server]`, `names[input.arguments.s]`,
	`count(names) == 1`, `some w in names; w == input.tool.server`, `p := input.arguments.n; y := p + 1; y == 2`, `input.tool.name > input.arguments.s`,
	`concat(",", input.arguments.list) == ""`, `input[g] == "tools/call"; g != "method"`, `count({h | input[h]}) > 5`,
}

const treacherousHelpers = helpers + `
clash := 1 if input.arguments.n == 1

clash := 2 if input.arguments.s

twice(x) := 1 if x > 0

twice(x) := 2 if x > 1

names contains input.arguments.s if true

names contains "a" if true
`

// TestFixedDecisionsAreTheFullOnes is the promise that a call is decided as if
// nothing were kept: over random policies, grants, principals, tools and calls,
// errors included.
func TestFixedDecisionsAreTheFullOnes(t *testing.T) {
	unraced.Long(t)
	if unraced.Short() {
		t.Skip("one goroutine: the race detector finds nothing in it")
	}
	r := seed.Rand(t)
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	var tools []*gate.Tool
	for _, name := range []string{"a__x", "a__y1", "b__x", "b__2"} {
		tool := newTool(name)
		tool.Sandboxed = r.IntN(2) == 0
		tools = append(tools, tool)
	}
	args := []string{`{}`, `{"n":1}`, `{"n":2,"s":"a"}`, `{"s":"pq"}`, `{"s":"1","n":1}`, `{"n":"n"}`, `{"list":["1",3]}`, `{"list":["x"],"n":3}`, `{"a":1,"b":2}`}
	all := append(append([]string{}, conditions...), treacherous...)
	fixed, guarded, decided, failed := 0, 0, 0, 0
	for range 40 {
		var rules strings.Builder
		for range 1 + r.IntN(5) {
			set := one("allow", "allow", "ask", "deny", "obligations", "labels")
			member := fmt.Sprintf(`"r%d"`, r.IntN(3))
			if set == "obligations" {
				member = one(`{"type": "timeout", "after": "5s"}`, `{"type": "max_result", "bytes": 9}`)
			} else if r.IntN(4) == 0 {
				member = one(`json.marshal(input.arguments)`, `sprintf("%v", [input.tool.name])`, `input.tool.server`, `input.arguments.s`)
			}
			fmt.Fprintf(&rules, "%s contains %s if {\n", set, member)
			for _, i := range r.Perm(len(all))[:1+r.IntN(3)] {
				fmt.Fprintf(&rules, "\t%s\n", all[i])
			}
			rules.WriteString("}\n\n")
		}
		o := policy.Options{Grants: randomGrants(r, r.IntN(4))}
		e, other := load(t, user(rules.String()+treacherousHelpers), o), load(t, user(rules.String()+treacherousHelpers), o)
		var people []*gate.Principal
		for range 3 {
			people = append(people, &gate.Principal{Owner: gate.Owner{ID: one("alice", "bob")}, Roles: [][]string{nil, {"dev"}, {"ops", "dev"}}[r.IntN(3)]})
		}
		for range 100 {
			q := gate.Query{
				Call: &gate.Call{
					Action: gate.CallTool, Who: people[r.IntN(len(people))], Args: gate.MustDoc(one(args...)),
					ClientName: one("", "c", "d"), Session: gate.SessionKey{ID: one("s1", "s2")},
				},
				Tool:    tools[r.IntN(len(tools))],
				Session: gate.Session{Labels: [][]string{nil, {"untrusted"}}[r.IntN(2)], Top: r.IntN(10) == 0},
			}
			got, gotErr := e.Authorize(t.Context(), q)
			want, wantErr := inFull(t.Context(), other, q)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || message(gotErr) != message(wantErr) {
				t.Fatalf("%s for %+v, arguments %s, session %+v: error %v, want %v; decision (-want +got):\n%s\n%s",
					q.Tool.Name, q.Call.Who, q.Call.Args, q.Session, gotErr, wantErr, diff, rules.String())
			}
			decided++
			if gotErr != nil {
				failed++
			}
		}
		fixed += e.Fixed()
		guarded += e.Guarded()
	}
	t.Logf("%d decisions, %d of them errors; of pairs of a principal and a tool %d fixed, %d guarded", decided, failed, fixed, guarded)
	if fixed+guarded < 10 || failed < 50 {
		t.Error("too little is fixed, guarded or fails; the test says nothing")
	}
}

// TestFixedDecisionsSeeTheWholeInput has a rule on each part of the input: a part
// in which calls differ, and that is known when tools are listed, would be decided
// as in the first call.
func TestFixedDecisionsSeeTheWholeInput(t *testing.T) {
	unraced.Long(t)
	calls := []gate.Query{query("a__b", `{"path":"/a"}`), query("a__b", `{"path":"/b","n":[1]}`)}
	calls[1].Tool = calls[0].Tool
	for i := range calls {
		c := calls[i].Call
		c.ID, c.Session.ID, c.ClientName, c.ClientVersion = fmt.Sprint(i), fmt.Sprint("s", i), fmt.Sprint("c", i), fmt.Sprint(i)
		calls[i].Session = gate.Session{Version: uint64(i), Labels: gate.NewLabels("a", fmt.Sprint(i))}
	}
	whole, err := load(t, user(`deny contains json.marshal(input) if true`), policy.Options{}).Authorize(t.Context(), calls[1])
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var visit func(ref string, d gate.Doc)
	visit = func(ref string, d gate.Doc) {
		if d.Kind() == doc.Object && len(d.Raw()) > 2 {
			for k, v := range d.Members() {
				visit(fmt.Sprintf("%s[%q]", ref, k), v)
			}
		}
		n++
		e := load(t, user(fmt.Sprintf("allow contains json.marshal(%s) if true\n\nallow contains \"x\" if not %[1]s", ref)), policy.Options{})
		for range 3 {
			for _, q := range calls {
				got, gotErr := e.Authorize(t.Context(), q)
				want, wantErr := inFull(t.Context(), e, q)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || message(gotErr) != message(wantErr) {
					t.Errorf("%s: %v, want %v (-want +got):\n%s", ref, gotErr, wantErr, diff)
				}
			}
		}
	}
	visit("input", gate.MustDoc(whole.Reasons[0]))
	for key := range gate.MustDoc(whole.Reasons[0]).Members() {
		e := load(t, user(fmt.Sprintf("allow contains \"x\" if json.marshal(input[%q])", key)), policy.Options{})
		for range 3 {
			_, _ = e.Authorize(t.Context(), calls[0])
		}
		if known := key == "action" || key == "principal" || key == "tool"; !known && e.Fixed() != 0 {
			t.Errorf("input.%s is taken to be the same for all calls", key)
		}
	}
	if n < 25 {
		t.Errorf("the input has only %d parts", n)
	}
}

func TestFixedDecisionsTellPrincipalsApart(t *testing.T) {
	e := load(t, user(`allow contains "red" if input.principal.claims.team == "red"

allow contains "verified" if input.principal.client.id == "v"`), policy.Options{Grants: []policy.Grant{{To: []string{"role:dev"}, Tools: []string{"*"}}}})
	people := map[*gate.Principal]gate.Effect{
		{Owner: gate.Owner{ID: "a"}}:                                            gate.Deny,
		{Owner: gate.Owner{ID: "a"}, Roles: []string{"dev"}}:                    gate.Allow,
		{Owner: gate.Owner{ID: "a"}, Roles: []string{"d", "ev"}}:                gate.Deny,
		{Owner: gate.Owner{ID: "a"}, Roles: []string{`d","dev`}}:                gate.Deny,
		{Owner: gate.Owner{ID: "a"}, Claims: gate.MustDoc(`{"team":"red"}`)}:    gate.Allow,
		{Owner: gate.Owner{ID: "a"}, Claims: gate.MustDoc(`{"team":"reds"}`)}:   gate.Deny,
		{Owner: gate.Owner{ID: "a"}, Client: "v"}:                               gate.Allow,
		{Owner: gate.Owner{ID: "a", Tenant: "t"}, Auth: "v", Roles: []string{}}: gate.Deny,
	}
	tool := newTool("a__b")
	for range 4 {
		for who, want := range people {
			who := *who // another address each time
			d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: &who}, Tool: tool})
			if err != nil || d.Effect != want {
				t.Errorf("%+v: %s, %v; want %s", who, d.Effect, err, want)
			}
		}
	}
	if got := e.Fixed(); got != len(people) {
		t.Errorf("%d fixed decisions for %d principals", got, len(people))
	}
}

func TestAFixedDecisionStillEndsWithItsContext(t *testing.T) {
	e := load(t, nil, policy.Options{Grants: someone})
	q := query("files__read_text", "{}")
	for range 3 {
		if _, err := e.Authorize(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := e.Authorize(ended(), q); !errors.Is(err, context.Canceled) || d.Effect != "" || e.Fixed() != 1 {
		t.Errorf("decision %+v, error %v", d, err)
	}
}

// TestFixedDecisionsAreBounded meets more pairs than are kept.
func TestFixedDecisionsAreBounded(t *testing.T) {
	unraced.Long(t)
	e := load(t, nil, policy.Options{Packs: noPacks})
	const pairs, kept = 17_000, 2 * 8192
	for range pairs {
		q := query("a__b", "{}")
		for range 2 {
			if _, err := e.Authorize(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := e.Fixed(); got == 0 || got > kept {
		t.Errorf("%d decisions are kept, want at most %d", got, kept)
	}
}
