package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// randomGrants returns grants over a small world of names, so that they overlap.
func randomGrants(r *rand.Rand, n int) []policy.Grant {
	some := func(list ...string) []string {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:1+r.IntN(2)]
	}
	grants := make([]policy.Grant, n)
	for i := range grants {
		grants[i].To = some("alice", "bob", "role:dev", "role:alice", "*")
		if r.IntN(4) > 0 {
			grants[i].Tools = some("a__x", "a__*", "a__y*", "a__y1", "b__x", "b*", "*", "a__y1long", "c__z*")
		} else {
			grants[i].Servers = some("a", "b", "c")
		}
		if r.IntN(2) == 0 {
			grants[i].Except = some("a__y*", "b__x", "a__x", "c*", "a__y1l*")
		}
	}
	return grants
}

// granted says what the pack grants means, in the simplest way.
func granted(grants []policy.Grant, who *gate.Principal, tool string) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			prefix, open := strings.CutSuffix(p, "*")
			return p == tool || open && strings.HasPrefix(tool, prefix)
		})
	}
	return slices.ContainsFunc(grants, func(g policy.Grant) bool {
		to := slices.ContainsFunc(g.To, func(s string) bool {
			role, isRole := strings.CutPrefix(s, "role:")
			return s == "*" || isRole && slices.Contains(who.Roles, role) || !isRole && s == who.ID
		})
		server, _, _ := strings.Cut(tool, "__")
		return to && (matches(g.Tools) || slices.Contains(g.Servers, server)) && !matches(g.Except)
	})
}

// TestTheIndexFindsWhatASearchWould compares the index of grants with a search
// through all of them, for calling and for listing.
func TestTheIndexFindsWhatASearchWould(t *testing.T) {
	unraced.Long(t)
	if unraced.Short() {
		t.Skip("one goroutine: the race detector finds nothing in it")
	}
	r := seed.Rand(t)
	var tools []*gate.Tool
	for _, name := range []string{"a__x", "a__y", "a__y1", "a__y1long", "b__x", "b__a__x", "c__z", "c__zz", "d__x"} {
		tools = append(tools, newTool(name))
	}
	yes, no := 0, 0
	for range unraced.Fewer(150) {
		grants := randomGrants(r, r.IntN(6))
		e := load(t, nil, policy.Options{Grants: grants})
		for _, who := range []*gate.Principal{
			{Owner: gate.Owner{ID: "alice"}}, {Owner: gate.Owner{ID: "bob"}, Roles: []string{"ops", "dev"}},
			{Owner: gate.Owner{ID: "role:dev"}}, {Owner: gate.Owner{ID: "*"}, Roles: []string{"*", "alice"}},
		} {
			visible, err := e.Visible(t.Context(), who, tools)
			if err != nil {
				t.Fatal(err)
			}
			for i, tool := range tools {
				want := granted(grants, who, tool.Name.String())
				d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: who}, Tool: tool})
				if err != nil {
					t.Fatal(err)
				}
				if got := d.Effect == gate.Allow; got != want || visible[i] != want {
					t.Fatalf("%s for %+v: allowed %v, visible %v, want %v\n%+v", tool.Name, who, got, visible[i], want, grants)
				}
				if want {
					yes++
				} else {
					no++
				}
			}
		}
	}
	if yes == 0 || no == 0 {
		t.Errorf("%d granted, %d not: the test says nothing", yes, no)
	}
}

func TestCheckGrants(t *testing.T) {
	for _, pattern := range []string{"a__b", "a__*", "a__b_*", "a*", "a_*", "*", "a-1__B-_x"} {
		if got := policy.CheckGrants([]policy.Grant{{To: []string{"*"}, Tools: []string{pattern}}}); got != nil {
			t.Errorf("tool %q: %v", pattern, got)
		}
	}
	for _, pattern := range []string{"", "a", "a_b", "A__b", "a__b c", "a__", "a*__b", "a__**", "_*", "A*", "a__b.*", "a_b*"} {
		got := policy.CheckGrants([]policy.Grant{{To: []string{"*"}, Tools: []string{"a__b", pattern}}})
		if len(got) != 1 || got[0].Entry != "grants[0]" || got[0].Field != "tools[1]" {
			t.Errorf("tool %q: %v, want one error at grants[0].tools[1]", pattern, got)
		}
	}
}

// TestEverySubjectCounts: a principal that is named twice, or by a role among many, is found.
func TestEverySubjectCounts(t *testing.T) {
	var grants []policy.Grant
	for i := range 300 {
		grants = append(grants, policy.Grant{To: []string{fmt.Sprintf("role:r%d", i)}, Tools: []string{fmt.Sprintf("s%d__*", i)}})
	}
	e := load(t, nil, policy.Options{Grants: grants})
	who := &gate.Principal{Owner: gate.Owner{ID: "x"}}
	for i := range 300 {
		who.Roles = append(who.Roles, fmt.Sprintf("r%d", i))
	}
	d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: who}, Tool: newTool("s299__x")})
	if err != nil || d.Effect != gate.Allow || d.Reasons[0] != "s299__* is granted to role:r299" {
		t.Errorf("Authorize = %+v, %v", d, err)
	}
}

// CheckGrants accepts well-formed names of principals, roles and tenants, and no others.
func TestTenantNames(t *testing.T) {
	for to, ok := range map[string]bool{
		"alice": true, "acme/alice": true, "role:dev": true, "role:acme/dev": true, "*": true, "acme/*": true, "*/*": true, "role:*/dev": true,
		"": false, "role:": false, "/alice": false, "acme/": false, "a/b/c": false, "role:/dev": false, "role:acme/": false,
	} {
		problems := policy.CheckGrants([]policy.Grant{{To: []string{to}, Tools: []string{"a__b"}}})
		if (len(problems) == 0) != ok {
			t.Errorf("%q: %v", to, problems)
		}
	}
}
