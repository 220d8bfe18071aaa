package policy_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// TestPeerRequestsOfOpaqueResources: what a server asks during the use of a resource that
// clients know by another URI is decided by the server's own.
func TestPeerRequestsOfOpaqueResources(t *testing.T) {
	unraced.Long(t)
	rules := user(`allow contains "all" if input.action == "roots/list"
deny contains "its own URI" if { input.action == "roots/list"; startswith(input.resource.uri, "file:///secret/") }`)
	grants := []policy.Grant{{To: []string{"alice"}, Servers: []string{"b"}, Except: []string{"file:///secret/*"}, Asks: []string{"roots"}}}
	name := gate.ToolName{Server: "b", Tool: "file:///secret/a"}
	for what, tt := range map[string]struct {
		tool *gate.Tool
		name string
		want gate.Effect
	}{
		"a resource":            {&gate.Tool{Feature: gate.FeatureResource, Name: name, Local: "file:///secret/a", Offered: "wasmgate://b/Zm9v"}, "wasmgate://b/Zm9v", gate.Deny},
		"of a template":         {&gate.Tool{Feature: gate.FeatureTemplate, Name: name, Local: "file:///{+p}", URI: "file:///secret/a", Offered: "wasmgate://b/template/file:///{+p}"}, "wasmgate://b/template/file:///secret/a", gate.Deny},
		"a template, completed": {&gate.Tool{Feature: gate.FeatureTemplate, Name: name, Local: "file:///secret/{p}", Offered: "wasmgate://b/template/file:///secret/{p}"}, "wasmgate://b/template/file:///secret/{p}", gate.Deny},
		"what may be read":      {&gate.Tool{Feature: gate.FeatureTemplate, Name: name, Local: "file:///{+p}", URI: "file:///a", Offered: "wasmgate://b/template/file:///{+p}"}, "wasmgate://b/template/file:///a", gate.Allow},
		"its own URI":           {&gate.Tool{Feature: gate.FeatureTemplate, Name: name, Local: "file:///{+p}", Offered: "file:///{+p}"}, "file:///secret/a", gate.Deny},
	} {
		q := gate.Query{Tool: tt.tool, Call: &gate.Call{Action: actions.ListRoots, Name: tt.name, Who: alice, Args: gate.MustDoc("{}")}}
		for by, e := range map[string]*policy.Engine{
			"a rule":  load(t, rules, policy.Options{}),
			"a grant": load(t, nil, policy.Options{Packs: []string{"grants"}, Grants: grants}),
		} {
			d, err := e.Authorize(t.Context(), q)
			if err != nil || d.Effect != tt.want {
				t.Errorf("%s, by %s: %+v, %v", what, by, d, err)
			}
		}
	}
}
