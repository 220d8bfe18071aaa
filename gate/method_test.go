package gate_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
)

func TestCheckMethod(t *testing.T) {
	for name, tt := range map[string]struct{ method, want string }{
		"two parts":                           {"acme/search", ""},
		"many parts, of all letters":          {"x/A-z_0.9/$a/b", ""},
		"a space that only begins like MCP's": {"toolsmith/call", ""},
		"one part":                            {"search", "is not a method"},
		"an empty part":                       {"acme//search", "is not a method"},
		"an empty end":                        {"acme/", "is not a method"},
		"nothing":                             {"", "is not a method"},
		"a control character":                 {"acme/sea\x1brch", "is not a method"},
		"a line break at the end":             {"acme/search\n", "is not a method"},
		"another alphabet":                    {"acmе/search", "is not a method"},
		"a pattern":                           {"acme/*", "is not a method"},
		"the longest":                         {"a/" + strings.Repeat("b", 126), ""},
		"a longer one":                        {"a/" + strings.Repeat("b", 127), "longer than 128 bytes"},
		"a megabyte":                          {"a/" + strings.Repeat("b", 1<<20), "longer than 128 bytes"},
		"what looks like a server's":          {"files__acme/search", "between a server and its method"},
		"a method of MCP":                     {"tools/call", "begins with tools/"},
		"one in other letters":                {"Tools/Call", "begins with tools/"},
		"one that MCP could get":              {"resources/write", "begins with resources/"},
		"a notification":                      {"notifications/cancelled", "begins with notifications/"},
		"a task":                              {"tasks/get", "begins with tasks/"},
		"what servers ask":                    {"sampling/createMessage", "begins with sampling/"},
		"discovery":                           {"server/discover", "begins with server/"},
		"what a module does":                  {"sandbox/http", "begins with sandbox/"},
		"what an operator does":               {"admin/grant", "begins with admin/"},
		"what JSON-RPC keeps for itself":      {"rpc.discover/all", "begins with rpc."},
	} {
		err := actions.CheckMethod(tt.method)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", name, err, tt.want)
		}
		if actions.IsMethod(gate.Action(tt.method)) != (err == nil) {
			t.Errorf("%s: as an action it is another thing", name)
		}
	}
}

// What the gate itself decides on is never taken for a method of a server's own.
func TestActionsAreNoMethods(t *testing.T) {
	for _, a := range []gate.Action{
		gate.CallTool, gate.GetPrompt, gate.ReadResource, gate.Subscribe, gate.Complete, actions.Elicit, actions.Sample, actions.ListRoots,
		"sandbox/http", "sandbox/secret", "sandbox/kv", "sandbox/file", "admin/read", "admin/approve", "admin/pin", "admin/grant",
	} {
		if actions.IsMethod(a) {
			t.Errorf("%s is a method", a)
		}
	}
}

func TestMethodAction(t *testing.T) {
	for name, want := range map[string]gate.Action{"acme/search": "acme/search", "files__acme/search": "acme/search", "a__b__c": "b__c", "": ""} {
		if got := actions.OfMethod(name); got != want {
			t.Errorf("MethodAction(%q) = %q, want %q", name, got, want)
		}
	}
}
