package policy_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

const (
	asksName = `{"message":"Who?","requestedSchema":{"properties":{"name":{"type":"string"}}}}`
	asksPIN  = `{"message":"Who?","requestedSchema":{"properties":{"pin":{"type":"string"}}},"secret":false}`
)

func asks(a gate.Action, params string, tool *gate.Tool, name string) gate.Query {
	return gate.Query{Call: &gate.Call{Action: a, Name: name, Args: gate.MustDoc(params), Who: alice, Session: gate.SessionKey{ID: "s"}}, Tool: tool}
}

// TestPeerInput: what policies see of a request of a server to the client. Whether it
// asks for a secret the gate says, not the server.
func TestPeerInput(t *testing.T) {
	tests := map[string]struct {
		query gate.Query
		rule  string
	}{
		"within the call of a tool": {
			asks(actions.Elicit, asksName, newTool("files__read"), "files__read"),
			`input.action == "elicitation/create"; input.server == "files"; input.tool.name == "files__read"; input.request.message == "Who?"; input.request.secret == false; input.session.id == "s"; not input.arguments`,
		},
		"for a secret, whatever the server says": {
			asks(actions.Elicit, asksPIN, newTool("files__read"), "files__read"), `input.request.secret == true`,
		},
		"for roots": {asks(actions.ListRoots, `{}`, newTool("files__read"), "files__read"), `input.request == {"secret": false}`},
		"within the use of a prompt": {
			asks(actions.Sample, `{"messages":[]}`, newPrompt("files__greet"), "files__greet"), `input.prompt.name == "files__greet"; not input.tool; input.server == "files"`,
		},
		"within the use of a resource": {
			asks(actions.Sample, `{"messages":[]}`, newResource(gate.FeatureResource, "docs", "doc://a"), "doc://a"), `input.resource.uri == "doc://a"; not input.tool; input.server == "docs"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(`allow contains "seen" if { `+tt.rule+` }`), policy.Options{Packs: []string{}})
			d, err := e.Authorize(t.Context(), tt.query)
			if err != nil || d.Effect != gate.Allow {
				t.Errorf("%+v, %v", d, err)
			}
			x, err := study.Explain(t.Context(), e, study.Case{Query: tt.query})
			if err != nil || x.Effect != gate.Allow {
				t.Errorf("explained as %+v, %v", x, err)
			}
		})
	}
}

// TestPeerGrants: what a server may ask is a grant of its own, but for forms.
func TestPeerGrants(t *testing.T) {
	granted := []policy.Grant{{To: []string{"alice"}, Servers: []string{"files"}}, {To: []string{"alice"}, Tools: []string{"mail__*"}, Asks: []string{"roots", "sampling", "secrets"}}}
	e := load(t, nil, policy.Options{Packs: []string{"grants"}, Grants: granted})
	remedies := map[gate.Action]string{
		actions.Elicit:    `write into the grants file: - {to: ["alice"], tools: ["files__read"], asks: [secrets]}`,
		actions.Sample:    `write into the grants file: - {to: ["alice"], tools: ["files__read"], asks: [sampling]}`,
		actions.ListRoots: `write into the grants file: - {to: ["alice"], tools: ["files__read"], asks: [roots]}`,
	}
	for action, params := range map[gate.Action]string{actions.Elicit: asksPIN, actions.Sample: `{"messages":[]}`, actions.ListRoots: `{}`} {
		d, err := e.Authorize(t.Context(), asks(action, params, newTool("mail__send"), "mail__send"))
		if err != nil || d.Effect != gate.Allow || !strings.Contains(d.Reasons[0], "mail__* is granted to alice, with ") {
			t.Errorf("%s: %+v, %v", action, d, err)
		}
		d, err = e.Authorize(t.Context(), asks(action, params, newTool("files__read"), "files__read"))
		if err != nil || d.Effect != gate.Deny || d.Hidden || d.Remedy != remedies[action] || !strings.Contains(d.Reasons[0], string(action)) {
			t.Errorf("%s: %+v, %v", action, d, err)
		}
	}
	if d, err := e.Authorize(t.Context(), asks(actions.Elicit, asksName, newTool("files__read"), "files__read")); err != nil || d.Effect != gate.Allow {
		t.Errorf("a form: %+v, %v", d, err)
	}
	if p := policy.CheckGrants([]policy.Grant{{To: []string{"alice"}, Tools: []string{"a__b"}, Asks: []string{"everything"}}}); len(p) != 1 || p[0].Field != "asks[0]" {
		t.Errorf("problems %v", p)
	}
	if p := policy.CheckGrants([]policy.Grant{{To: []string{"alice"}, Asks: []string{"roots"}}}); len(p) != 1 {
		t.Errorf("a grant of nothing but asks: %v", p)
	}
}

func TestPeerEval(t *testing.T) {
	e := load(t, nil, policy.Options{Packs: []string{"grants"}})
	out, err := policy.Eval(t.Context(), e, []byte(`{"action":"roots/list","principal":{"id":"alice","roles":[]},"server":"files","tool":{"name":"files__read"},"request":{"secret":false}}`))
	if err != nil || !strings.Contains(string(out), `"effect":"deny"`) || !strings.Contains(string(out), "roots/list by server files") {
		t.Errorf("%s, %v", out, err)
	}
}
