package policy_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

func newPrompt(name string) *gate.Tool {
	t := newTool(name)
	t.Feature = gate.FeaturePrompt
	return t
}

func newResource(f gate.Feature, server, uri string) *gate.Tool {
	return &gate.Tool{Feature: f, Name: gate.ToolName{Server: server}, Local: uri, Offered: uri, MIME: "text/plain"}
}

// TestFeatureInput: what policies see of the use of a prompt or a resource, and that
// they never see a tool.
func TestFeatureInput(t *testing.T) {
	page := newResource(gate.FeatureTemplate, "docs", "doc://{page}")
	tests := map[string]struct {
		call gate.Call
		tool *gate.Tool
		rule string
	}{
		"a prompt": {
			gate.Call{Action: gate.GetPrompt, Name: "greet", Args: gate.MustDoc(`{"who":"ann"}`)}, newPrompt("files__greet"),
			`input.prompt == {"name": "files__greet", "server": "files", "groups": []}; input.arguments == {"who": "ann"}; not input.resource`,
		},
		"a resource": {
			gate.Call{Action: gate.ReadResource, Name: "doc://a"}, newResource(gate.FeatureResource, "docs", "doc://a"),
			`input.resource == {"uri": "doc://a", "server": "docs", "mime_type": "text/plain", "groups": []}; not input.prompt; not input.arguments`,
		},
		"a resource that a template stands for": {
			gate.Call{Action: gate.ReadResource, Name: "doc://7"}, page,
			`input.resource == {"uri": "doc://7", "template": "doc://{page}", "server": "docs", "mime_type": "text/plain", "groups": []}`,
		},
		"the subscription to a resource": {
			gate.Call{Action: gate.Subscribe, Name: "doc://a"}, newResource(gate.FeatureResource, "docs", "doc://a"),
			`input.resource == {"uri": "doc://a", "server": "docs", "mime_type": "text/plain", "groups": []}; not input.prompt; not input.arguments`,
		},
		"the subscription to what a template stands for": {
			gate.Call{Action: gate.Subscribe, Name: "doc://7"}, page,
			`input.resource.uri == "doc://7"; input.resource.template == "doc://{page}"; not input.arguments`,
		},
		"the completion of a prompt": {
			gate.Call{Action: gate.Complete, Name: "greet", Args: gate.MustDoc(`{"argument":{"name":"who","value":"a"}}`)}, newPrompt("files__greet"),
			`input.prompt.name == "files__greet"; input.arguments.argument.value == "a"`,
		},
		"the completion of a template": {
			gate.Call{Action: gate.Complete, Name: "doc://{page}", Args: gate.MustDoc(`{"argument":{"name":"page","value":"1"}}`)}, page,
			`not input.resource.uri; input.resource.template == "doc://{page}"; input.arguments.argument.value == "1"`,
		},
	}
	for name, tt := range tests {
		e := load(t, user(`allow contains "as it should be" if { input.action == "`+string(tt.call.Action)+`"; not input.tool; not input.provenance; `+tt.rule+` }`), policy.Options{})
		tt.call.Who = alice
		d, err := e.Authorize(t.Context(), gate.Query{Call: &tt.call, Tool: tt.tool})
		if err != nil || d.Effect != gate.Allow {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

// TestFeatureRemedies: the operator learns which line of the grants file allows the use
// of what is refused, and with it the use is allowed.
func TestFeatureRemedies(t *testing.T) {
	unraced.Long(t)
	page := newResource(gate.FeatureTemplate, "docs", "doc://{page}")
	for name, tt := range map[string]struct {
		call   gate.Call
		tool   *gate.Tool
		remedy string
		grant  policy.Grant
	}{
		"a prompt":                        {gate.Call{Action: gate.GetPrompt, Name: "greet"}, newPrompt("files__greet"), `prompts: ["files__greet"]`, policy.Grant{Prompts: []string{"files__greet"}}},
		"its argument":                    {gate.Call{Action: gate.Complete, Name: "greet"}, newPrompt("files__greet"), `prompts: ["files__greet"]`, policy.Grant{Prompts: []string{"files__greet"}}},
		"a resource":                      {gate.Call{Action: gate.ReadResource, Name: "doc://a"}, newResource(gate.FeatureResource, "docs", "doc://a"), `resources: ["doc://a"]`, policy.Grant{Resources: []string{"doc://a"}}},
		"one of a template":               {gate.Call{Action: gate.Subscribe, Name: "doc://7"}, page, `resources: ["doc://7"]`, policy.Grant{Resources: []string{"doc://7"}}},
		"one that no pattern names alone": {gate.Call{Action: gate.ReadResource, Name: "doc://*"}, page, "", policy.Grant{Resources: []string{"doc://*"}}},
	} {
		tt.call.Who, tt.call.Args, tt.grant.To = alice, gate.MustDoc("{}"), []string{"alice"}
		q := gate.Query{Call: &tt.call, Tool: tt.tool}
		want := ""
		if tt.remedy != "" {
			want = `write into the grants file: - {to: ["alice"], ` + tt.remedy + "}"
		}
		d, err := load(t, nil, policy.Options{Packs: []string{"grants"}}).Authorize(t.Context(), q)
		if err != nil || d.Effect != gate.Deny || d.Remedy != want {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		d, err = load(t, nil, policy.Options{Packs: []string{"grants"}, Grants: []policy.Grant{tt.grant}}).Authorize(t.Context(), q)
		if err != nil || d.Effect != gate.Allow {
			t.Errorf("%s, granted: %+v, %v", name, d, err)
		}
	}
}

// TestFeatureActions: no action is decided on for what it does not use, so that no
// grant of the one is taken for one of the other.
func TestFeatureActions(t *testing.T) {
	e := load(t, user(`allow contains "anything" if true`), policy.Options{})
	for action, tool := range map[gate.Action]*gate.Tool{
		gate.CallTool:     newPrompt("a__b"),
		gate.GetPrompt:    newTool("a__b"),
		gate.ReadResource: newPrompt("a__b"),
		gate.Subscribe:    newPrompt("a__b"),
		gate.Complete:     newResource(gate.FeatureResource, "a", "doc://a"),
		"sandbox/http":    newPrompt("a__b"),
	} {
		if d, err := e.Authorize(t.Context(), gate.Query{Call: &gate.Call{Action: action, Name: "x", Who: alice}, Tool: tool}); err == nil {
			t.Errorf("%s of a %q is decided: %+v", action, tool.Feature, d)
		}
	}
}

// TestFeaturesVisible: a prompt or a resource is listed if it could be used, and a
// template if some URI of it could be read.
func TestFeaturesVisible(t *testing.T) {
	unraced.Long(t)
	template := func(uri string) *gate.Tool { return newResource(gate.FeatureTemplate, "docs", uri) }
	granted := []policy.Grant{{To: []string{"alice"}, Prompts: []string{"a__p*"}, Resources: []string{"doc://open/*"}}, {To: []string{"alice"}, Groups: []string{"shared"}, Except: []string{"doc://secret/*"}}}
	in := func(group string, t *gate.Tool) *gate.Tool {
		t.Groups = []string{group}
		return t
	}
	tests := map[string]struct {
		rules string
		tool  *gate.Tool
		want  bool
	}{
		"a granted prompt":                         {"", newPrompt("a__pray"), true},
		"another prompt":                           {"", newPrompt("a__q"), false},
		"a granted resource":                       {"", newResource(gate.FeatureResource, "docs", "doc://open/a"), true},
		"another resource":                         {"", newResource(gate.FeatureResource, "docs", "doc://closed/a"), false},
		"a template of granted resources":          {"", template("doc://open/{x}"), true},
		"a template of granted and other ones":     {"", template("doc://{+x}"), true},
		"a template of others":                     {"", template("doc://closed/{x}"), false},
		"a template of which some are denied":      {`deny contains "x" if startswith(input.resource.uri, "doc://open/a")`, template("doc://open/{x}"), true},
		"a template of a server that is denied":    {`deny contains "x" if input.resource.server == "docs"`, template("doc://open/{x}"), false},
		"a template that a rule allows by its URI": {`allow contains "x" if startswith(input.resource.uri, "doc://closed/a")`, template("doc://closed/{x}"), true},
		"a template in a granted group":            {"", in("shared", template("doc://closed/{x}")), true},
		"a template that the grant excepts":        {"", in("shared", template("doc://secret/{x}")), false},
		"a template in another group":              {"", in("other", template("doc://closed/{x}")), false},
		"a prompt in a granted group":              {"", in("shared", newPrompt("a__q")), true},
		"a tool in a granted group":                {"", in("shared", newTool("a__q")), true},
		"a tool in another group":                  {"", in("other", newTool("a__q")), false},
		"a prompt with arguments that may be good": {`allow contains "x" if input.arguments.who == "ann"`, newPrompt("a__q"), true},
	}
	for name, tt := range tests {
		e := load(t, user(tt.rules), policy.Options{Grants: granted})
		for range 2 { // the second answer comes from the cache
			got, err := e.Visible(t.Context(), alice, []*gate.Tool{tt.tool})
			if err != nil || len(got) != 1 || got[0] != tt.want {
				t.Errorf("%s: Visible = %v, %v; want %v", name, got, err, tt.want)
			}
		}
	}
}
