package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// TestListsAreNotConfused: however a rule tells two people of the same roles apart, who lists
// second is offered what the rules say of them alone.
func TestListsAreNotConfused(t *testing.T) {
	unraced.Long(t)
	const p = `allow contains "x" if `
	grants := []policy.Grant{{To: []string{"role:dev"}, Tools: []string{"a__b"}}}
	for name, tt := range map[string]struct {
		rules  string
		grants []policy.Grant
	}{
		"nothing does":                                      {"", grants},
		"a grant to one":                                    {"", []policy.Grant{{To: []string{"bob"}, Tools: []string{"a__b"}}}},
		"a grant to one of a tenant":                        {"", []policy.Grant{{To: []string{"acme/bob"}, Tools: []string{"a__b"}}}},
		"a grant to a tenant":                               {"", []policy.Grant{{To: []string{"acme/*"}, Tools: []string{"a__b"}}}},
		"what a grant excepts":                              {"", []policy.Grant{{To: []string{"bob"}, Tools: []string{"a__*"}, Except: []string{"a__b"}}, {To: []string{"alice"}, Tools: []string{"a__b"}}}},
		"the id":                                            {p + `input.principal.id == "bob"`, nil},
		"the id, denied":                                    {`deny contains "x" if input.principal.id == "bob"`, grants},
		"the id in brackets":                                {p + `input["principal"]["id"] == "bob"`, nil},
		"the id by a variable":                              {p + `{ some k; input.principal[k] == "bob" }`, nil},
		"the id by a computed name":                         {p + `{ k := concat("", ["i", "d"]); input.principal[k] == "bob" }`, nil},
		"the member, computed":                              {p + `{ k := concat("", ["princi", "pal"]); input[k].id == "bob" }`, nil},
		"not told before a call: the id in a document":      {p + `object.get(input, ["principal", "id"], "") == "bob"`, nil},
		"not told before a call: the id in the principal":   {p + `object.get(input.principal, "id", "") == "bob"`, nil},
		"the id given away":                                 {p + `{ x := input; x.principal.id == "bob" }`, nil},
		"not told before a call: the id in a function":      {p + "named(input.principal)\n\nnamed(x) if x.id == \"bob\"", nil},
		"not told before a call: the id in a comprehension": {p + `{ ids := {v | some v in input.principal}; "bob" in ids }`, nil},
		"not told before a call: the id in a string":        {p + `sprintf("%v", [input.principal]) == sprintf("%v", [object.union(input.principal, {"id": "bob"})])`, nil},
		"the id by a pack's rule":                           {p + `grants_principal == "bob"`, nil},
		"a pack's rule by its path":                         {p + `data.wasmgate.grants_principal == "bob"`, nil},
		"a lookup of one's own":                             {p + `wasmgate.granted([{"to": ["bob"], "tools": ["a__b"]}], "tools", "a__b", input.principal.id, [])`, nil},
		"the client":                                        {p + `input.principal.client.id == "c-bob"`, nil},
		"the way":                                           {p + `input.principal.auth == "mtls"`, nil},
		"a claim":                                           {p + `input.principal.claims.dept == "b"`, nil},
		"the tenant":                                        {p + `input.principal.tenant == "acme"`, nil},
		"a role":                                            {p + `"lead" in input.principal.roles`, nil},
		"the order of roles":                                {p + `input.principal.roles[0] == "lead"`, nil},
		"a negation":                                        {p + `not input.principal.id in {"alice", "carol"}`, nil},
		"a helper with else":                                {p + "who == \"bob\"\n\nwho := \"nobody\" if input.principal.id == \"alice\"\n\nelse := input.principal.id", nil},
	} {
		t.Run(name, func(t *testing.T) {
			people := []*gate.Principal{
				{Owner: gate.Owner{ID: "alice"}, Auth: "bearer", Client: "c-alice", Roles: []string{"dev"}, Claims: gate.MustDoc(`{"dept":"a"}`)},
				{Owner: gate.Owner{ID: "bob"}, Auth: "mtls", Client: "c-bob", Roles: []string{"dev"}, Claims: gate.MustDoc(`{"dept":"b"}`)},
				{Owner: gate.Owner{ID: "bob", Tenant: "acme"}, Auth: "bearer", Client: "c-alice", Roles: []string{"dev"}},
				{Owner: gate.Owner{ID: "dora"}, Auth: "bearer", Client: "c-dora", Roles: []string{"dev", "lead"}},
				{Owner: gate.Owner{ID: "emil"}, Auth: "bearer", Client: "c-emil", Roles: []string{"lead", "dev"}},
			}
			tools := []*gate.Tool{newTool("a__b"), newTool("a__c")}
			shared := load(t, user(tt.rules), policy.Options{Grants: tt.grants})
			told := map[string]bool{}
			for _, who := range people {
				var alone []bool
				for _, tool := range tools {
					v, _, err := study.VerdictOf(t.Context(), shared, who, tool) // which keeps nothing
					if err != nil {
						t.Fatal(err)
					}
					alone = append(alone, v != study.Never)
				}
				got, err := shared.Visible(t.Context(), who, tools)
				if err != nil || !slices.Equal(got, alone) {
					t.Errorf("%s is offered %v after the others, %v alone; %v", match.Name(who.Tenant, who.ID), got, alone, err)
				}
				told[fmt.Sprint(alone)] = true
			}
			if len(told) < 2 && name != "nothing does" && !strings.HasPrefix(name, "not told") {
				t.Error("the rule tells nobody apart")
			}
		})
	}
}

// TestListsOfOneRoleSet: those whom no rule and no grant tells apart have one list, which is
// found out once.
func TestListsOfOneRoleSet(t *testing.T) {
	const rule = `deny contains "x" if { input.tool.name == "a__c"; not "lead" in input.principal.roles }`
	e := load(t, user(rule), policy.Options{Grants: []policy.Grant{{To: []string{"role:dev"}, Tools: []string{"a__*"}}, {To: []string{"carol"}, Tools: []string{"b__*"}}}})
	person := func(id string) *gate.Principal {
		return &gate.Principal{Owner: gate.Owner{ID: id}, Auth: "bearer", Client: id, Roles: []string{"dev"}}
	}
	if !policy.ListTogether(e, person("alice"), person("bob")) {
		t.Error("alice and bob have lists of their own")
	}
	if policy.ListTogether(e, person("alice"), person("carol")) {
		t.Error("carol, whom a grant names, has the list of alice")
	}
	if lead := person("dora"); policy.ListTogether(e, person("alice"), &gate.Principal{Owner: lead.Owner, Roles: []string{"lead"}}) {
		t.Error("a lead has the list of alice")
	}
}
