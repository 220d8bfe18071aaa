package policy_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

func newMethod(server, method string) *gate.Tool {
	return &gate.Tool{Feature: gate.FeatureMethod, Name: gate.ToolName{Server: server, Tool: method}, Local: method}
}

func methodQuery(t *gate.Tool) gate.Query {
	return gate.Query{Tool: t, Call: &gate.Call{Action: gate.Action(t.Local), Name: t.Local, Args: gate.MustDoc(`{"q":"x"}`), Who: alice}}
}

// TestMethodInput: what policies see of the use of a method that MCP does not have.
func TestMethodInput(t *testing.T) {
	e := load(t, user(`allow contains "as it should be" if {
		input.action == "acme/search"
		input.server == "files"
		input.method == {"name": "files__acme/search", "server": "files", "groups": []}
		input.arguments == {"q": "x"}
		not input.tool; not input.prompt; not input.resource; not input.provenance
	}`), policy.Options{})
	q := methodQuery(newMethod("files", "acme/search"))
	q.Call.Name = "files__acme/search" // as the client says it
	d, err := e.Authorize(t.Context(), q)
	if err != nil || d.Effect != gate.Allow {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestMethodGrants: a method passes only if a grant is of it, of its server or of a group
// that it is in, and what could not pass is hidden.
func TestMethodGrants(t *testing.T) {
	unraced.Long(t)
	grouped := newMethod("files", "acme/search")
	grouped.Groups = []string{"docs"}
	search := newMethod("files", "acme/search")
	for name, tt := range map[string]struct {
		grant policy.Grant
		tool  *gate.Tool
		want  bool
	}{
		"no grant of methods":              {policy.Grant{Tools: []string{"*"}, Prompts: []string{"*"}, Resources: []string{"*"}}, search, false},
		"its name":                         {policy.Grant{Methods: []string{"acme/search"}}, search, true},
		"a pattern":                        {policy.Grant{Methods: []string{"acme/*"}}, search, true},
		"its name at its server":           {policy.Grant{Methods: []string{"files__acme/search"}}, search, true},
		"a pattern of its server":          {policy.Grant{Methods: []string{"files__*"}}, search, true},
		"its name at another server":       {policy.Grant{Methods: []string{"wiki__acme/search"}}, search, false},
		"another pattern":                  {policy.Grant{Methods: []string{"acme/index/*"}}, search, false},
		"its server":                       {policy.Grant{Servers: []string{"files"}}, search, true},
		"another server":                   {policy.Grant{Servers: []string{"wiki"}}, search, false},
		"its server, but for it":           {policy.Grant{Servers: []string{"files"}, Except: []string{"acme/*"}}, search, false},
		"its name, but not at this server": {policy.Grant{Methods: []string{"acme/*"}, Except: []string{"files__*"}}, search, false},
		"its group":                        {policy.Grant{Groups: []string{"docs"}}, grouped, true},
		"its group, but for it":            {policy.Grant{Groups: []string{"docs"}, Except: []string{"acme/search"}}, grouped, false},
		"a group that it is not in":        {policy.Grant{Groups: []string{"docs"}}, search, false},
	} {
		tt.grant.To = []string{"alice"}
		e := load(t, nil, policy.Options{Packs: []string{"grants"}, Grants: []policy.Grant{tt.grant}})
		d, err := e.Authorize(t.Context(), methodQuery(tt.tool))
		if err != nil || (d.Effect == gate.Allow) != tt.want || d.Hidden == tt.want {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		visible, err := e.Visible(t.Context(), alice, []*gate.Tool{tt.tool})
		if err != nil || visible[0] != tt.want {
			t.Errorf("%s: Visible = %v, %v", name, visible, err)
		}
		bob := methodQuery(tt.tool)
		bob.Call.Who = &gate.Principal{Owner: gate.Owner{ID: "bob"}}
		if d, err := e.Authorize(t.Context(), bob); err != nil || d.Effect != gate.Deny {
			t.Errorf("%s, for another: %+v, %v", name, d, err)
		}
	}
}

// TestMethodRemedy: the operator learns which line allows what is refused.
func TestMethodRemedy(t *testing.T) {
	d, err := load(t, nil, policy.Options{Packs: []string{"grants"}}).Authorize(t.Context(), methodQuery(newMethod("files", "acme/search")))
	if want := `write into the grants file: - {to: ["alice"], methods: ["files__acme/search"]}`; err != nil || d.Effect != gate.Deny || d.Remedy != want {
		t.Errorf("%+v, %v; want the remedy %s", d, err, want)
	}
}

// TestMethodActions: a method is decided on by its own action only, and nothing else by that
// action.
func TestMethodActions(t *testing.T) {
	e := load(t, user(`allow contains "anything" if true`), policy.Options{})
	search := newMethod("files", "acme/search")
	for name, q := range map[string]gate.Query{
		"by another method":          {Tool: search, Call: &gate.Call{Action: "acme/index", Who: alice}},
		"by the call of a tool":      {Tool: search, Call: &gate.Call{Action: gate.CallTool, Who: alice}},
		"by a module's use":          {Tool: search, Call: &gate.Call{Action: "sandbox/http", Who: alice}},
		"a tool by a method":         {Tool: newTool("files__x"), Call: &gate.Call{Action: "acme/search", Who: alice}},
		"one that is a module's use": {Tool: newMethod("files", "sandbox/http"), Call: &gate.Call{Action: "sandbox/http", Who: alice}},
	} {
		if d, err := e.Authorize(t.Context(), q); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestMethodsAreNoMisspeltActions: a rule may be about any method, and a slip is found all
// the same.
func TestMethodsAreNoMisspeltActions(t *testing.T) {
	unraced.Long(t)
	for action, want := range map[string]bool{"acme/search": false, "tool/call": true, "tools/list": true, "search": true} {
		found, err := policy.Check(user(`allow contains "x" if input.action == "`+action+`"`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		warned := false
		for _, p := range found {
			warned = warned || strings.Contains(p.Message, "there is no action")
		}
		if warned != want {
			t.Errorf("%s: %v", action, found)
		}
	}
}

// TestMethodPacks: a pack treats methods as it treats tools that are not labelled, however they are
// granted.
func TestMethodPacks(t *testing.T) {
	unraced.Long(t)
	read := gate.Session{Labels: gate.NewLabels(provenance.Untrusted)}
	for name, tt := range map[string]struct {
		pack    string
		session gate.Session
		want    gate.Effect
		rates   int
	}{
		"only what reads":                 {"readonly", gate.Session{}, gate.Deny, 0},
		"a person approves":               {"approve", gate.Session{}, gate.Ask, 0},
		"nothing untrusted has been read": {"flow", gate.Session{}, gate.Allow, 0},
		"something untrusted has":         {"flow", read, gate.Deny, 0},
		"the same, and a person is asked": {"flow-ask", read, gate.Ask, 0},
		"limits":                          {"ratelimit", gate.Session{}, gate.Allow, 1},
	} {
		e := load(t, nil, policy.Options{
			Packs: []string{"grants", tt.pack}, Grants: []policy.Grant{{To: []string{"alice"}, Servers: []string{"files"}}},
			RateLimits: []policy.RateLimit{{To: []string{"*"}, Servers: []string{"files"}, Calls: 3, Per: "1m"}},
		})
		q := methodQuery(newMethod("files", "acme/wipe"))
		q.Session = tt.session
		d, err := e.Authorize(t.Context(), q)
		if err != nil || d.Effect != tt.want || len(d.Obligations) != tt.rates {
			t.Errorf("%s: %+v, %v; want %v", name, d, err, tt.want)
		}
	}
}
