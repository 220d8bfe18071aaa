package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// TestExplanationsAgree holds explanations of random calls against decisions:
// what is explained is what was decided, and what does not need the arguments is
// so whatever they are.
func TestExplanationsAgree(t *testing.T) {
	unraced.Long(t)
	r := seed.Rand(t)
	all := append(append([]string{}, conditions...), treacherous...)
	args := []string{`{}`, `{"n":1}`, `{"n":2,"s":"a"}`, `{"s":"1","n":1}`, `{"list":["1",3]}`, `{"a":1,"b":2}`}
	missing := map[string]string{"input.arguments": "arguments", "input.provenance": "provenance"}
	known, compared := 0, 0
	for range 15 {
		var rules strings.Builder
		for i := range 1 + r.IntN(4) {
			fmt.Fprintf(&rules, "%s contains \"r%d\" if {\n", []string{"allow", "allow", "ask", "deny"}[r.IntN(4)], i)
			for _, i := range r.Perm(len(all))[:1+r.IntN(2)] {
				fmt.Fprintf(&rules, "\t%s\n", all[i])
			}
			rules.WriteString("}\n\n")
		}
		e := load(t, user(rules.String()+treacherousHelpers), policy.Options{Packs: noPacks})
		for range 12 {
			q := query([]string{"a__x", "a__y1", "b__x"}[r.IntN(3)], args[r.IntN(len(args))])
			d, failed := e.Authorize(t.Context(), q)
			x, err := study.Explain(t.Context(), e, study.Case{Query: q})
			if err != nil {
				t.Fatal(err)
			}
			if failed != nil && x.Error == "" || failed == nil && x.Effect != d.Effect {
				t.Fatalf("%s with %s: decided %q, %v; explained %+v\n%s", q.Tool.Name, q.Call.Args, d.Effect, failed, x, rules.String())
			}
			compared++
			if x, err = study.Explain(t.Context(), e, study.Case{Query: q, Unknown: missing}); err != nil {
				t.Fatal(err)
			}
			if x.Effect != "" {
				known++
			}
			if failed == nil && x.Effect != "" && x.Effect != d.Effect {
				t.Fatalf("%s with %s: decided %q; explained without the arguments %+v\n%s", q.Tool.Name, q.Call.Args, d.Effect, x, rules.String())
			}
			if failed != nil {
				continue
			}
			if x, err = study.Explain(t.Context(), e, study.Case{Query: q, Unknown: missing, Decision: d}); err != nil {
				t.Fatal(err)
			}
			if x.Effect != d.Effect || len(x.Decided) == 0 && d.Reasons[0] != "no policy allows "+q.Tool.Name.String()+" for alice" {
				t.Fatalf("%s with %s: decided %q; explained by that %+v\n%s", q.Tool.Name, q.Call.Args, d.Effect, x, rules.String())
			}
		}
	}
	t.Logf("%d explanations, %d of them without the arguments", compared, known)
	if known == 0 {
		t.Error("nothing was known without arguments; the test says little")
	}
}
